package ratelimit_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// TestLongRequestsCountAtTheirEnd: a client that begins requests early and ends them late sees no more counted outcomes
// than a client that does not wait.
func TestLongRequestsCountAtTheirEnd(t *testing.T) {
	for _, l := range []algorithms.Limit{
		algorithms.SlidingWindowLog(5, time.Minute), algorithms.SlidingWindowCounter(5, time.Minute),
		algorithms.FixedWindow(5, time.Minute), algorithms.TokenBucket(5, time.Minute),
	} {
		for status, want := range map[int]int64{401: 3, 200: 5} {
			for _, hold := range []time.Duration{61 * time.Second, 3 * time.Minute} {
				t.Run(fmt.Sprintf("%v/%d/%v", l.Algorithm(), status, hold), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						memory, p := algorithms.NewMemory(nil), newOutcomes(l)
						h := newMiddleware(t, memory, nil, p.Policy).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
							time.Sleep(hold)
							w.WriteHeader(status)
						}))
						for range 2 {
							go record(h, from("192.0.2.1"))
						}
						time.Sleep(hold + time.Second)
						synctest.Wait()
						checks := []algorithms.Check{{Policy: "failures", Key: "ip=192.0.2.1", Limit: l}}
						if err := memory.Allow(t.Context(), checks); err != nil {
							t.Fatal(err)
						}
						if got := checks[0].Decision.Remaining; got != want {
							t.Errorf("got %d remaining after two requests that ended a second ago, want %d", got, want)
						}
					})
				})
			}
		}
	}
}
