package limitertest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/limitertest"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// A Fake fails as Redis does. Under FailLocal it lets requests pass: for the share of an
// instance, use a shared.Limiter whose client has the address of no server. In your package,
// name the function TestOutage.
func Example_outage() {
	run(testOutage)
	// Output: passed: true
}

func testOutage(t *testing.T) {
	fake := limitertest.NewFake() // its clock is fake.Memory's: here the real one
	limited := ratelimit.Must(ratelimit.New(fake, nil, ratelimit.Policy{
		Name: "login", Limit: algorithms.SlidingWindowLog(5, time.Minute), Fail: algorithms.FailClosed,
	}))
	service := limited.Handler(http.NotFoundHandler())
	status := func() int {
		w := httptest.NewRecorder()
		service.ServeHTTP(w, httptest.NewRequest("POST", "/login", nil))
		return w.Code
	}
	for _, outage := range []struct {
		err  error
		want int
	}{{nil, 404}, {algorithms.ErrUnavailable, 503}, {nil, 404}} {
		fake.Fail(outage.err)
		if got := status(); got != outage.want {
			t.Errorf("with the error %v: got status %d, want %d", outage.err, got, outage.want)
		}
	}
}
