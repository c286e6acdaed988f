package migrate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// TestShadow: around the old limiter, a shadow of penstock denies no request, and reports whom it would deny.
func TestShadow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shadow, err := ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
			Name: "api", Limit: algorithms.SlidingWindowCounter(50, time.Minute), Shadow: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		if lines := compare(t, httprateBefore(order), shadow.Handler(httprateBefore(order)), nil, []step{{send: 102}}); len(lines) > 0 {
			t.Errorf("got %q", lines)
		}
		if top := shadow.TopDenied("api", 1); len(top) != 1 || top[0].Denied != 52 {
			t.Errorf("got %+v, want the client with 52 denials", top)
		}
	})
}
