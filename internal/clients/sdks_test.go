// The SDKs of OpenAI and Anthropic, as workers of one account.

package clients

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// TestSDKsOfOneAccount: ten workers send twenty calls each with two retries, as the SDKs do by default, and nearly all calls
// succeed. With the true wait alone, which a hidden policy tells, most of them fail.
func TestSDKsOfOneAccount(t *testing.T) {
	const workers, calls = 10, 20
	var wg sync.WaitGroup
	for _, name := range []string{"openai", "anthropic"} {
		for _, hidden := range []bool{false, true} {
			wg.Go(func() {
				failed, requests := sdk(t, name, hidden, workers, calls)
				t.Logf("%s, true waits alone: %t: %d of %d calls fail, %.2f requests per success",
					name, hidden, failed, workers*calls, float64(requests)/float64(workers*calls-failed))
				if hidden && failed < workers*calls/4 {
					t.Errorf("%s: got %d calls that fail with true waits alone, want a crowd that needs the line", name, failed)
				}
				if !hidden && failed > workers*calls/20 { // in real time, 3 of 200 were seen to fail
					t.Errorf("%s: got %d calls that fail, want at most 5 %%", name, failed)
				}
			})
		}
	}
	wg.Wait()
}

// sdk returns how many calls of an SDK failed, and how many requests it sent.
func sdk(t *testing.T, name string, hidden bool, workers, calls int) (failed int, requests int64) {
	var sent atomic.Int64
	account := keyfunc.Custom("account", func(*http.Request) (string, error) { return "acme", nil })
	m := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), &ratelimit.Options{Headers: headers.Draft | headers.Milliseconds}, ratelimit.Policy{
		Name: "account", Key: account, Limit: algorithms.TokenBucket(10, time.Second), Hidden: hidden,
	}))
	h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[],"has_more":false}`)
	}))
	base := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent.Add(1)
		h.ServeHTTP(w, r)
	}))
	out, err := exec.Command("node", "sdks.mjs", base, name, fmt.Sprint(workers), fmt.Sprint(calls)).CombinedOutput()
	if err != nil {
		t.Errorf("node: %v: run make test-clients\n%s", err, out)
		return 0, 0
	}
	if failed, err = strconv.Atoi(strings.TrimSpace(string(out))); err != nil {
		t.Errorf("%s: got %q, want a number", name, out)
	}
	return failed, sent.Load()
}
