package limitertest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// A Memory needs nothing else inside testing/synctest: the bubble's clock is the
// limiter's, so a wait takes no time. In your package, name the function TestRefill.
func Example_synctest() {
	run(testRefill)
	// Output: passed: true
}

func testRefill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
			Name: "api", Limit: algorithms.TokenBucket(2, time.Minute),
		}))
		service := limited.Handler(http.NotFoundHandler())
		status := func() int {
			w := httptest.NewRecorder()
			service.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			return w.Code
		}
		for i, want := range []int{404, 404, 429} {
			if got := status(); got != want {
				t.Errorf("request %d: got status %d, want %d", i, got, want)
			}
		}
		time.Sleep(30 * time.Second)
		if got := status(); got != 404 {
			t.Errorf("after 30 s: got status %d, want 404", got)
		}
	})
}
