// Tests of what the page says about decisions that instances make by themselves.

package statuspage_test

import (
	"context"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/statuspage"
)

// A lossy limiter counts as a shared one whose Redis does not decide its first calls.
type lossy struct {
	algorithms.Limiter
	lost int
}

func (l *lossy) Stats() algorithms.Stats { return algorithms.Stats{Shared: true} }

func (l *lossy) Allow(ctx context.Context, checks []algorithms.Check) error {
	err := l.Limiter.Allow(ctx, checks)
	l.lost--
	for i := range checks {
		if l.lost < 0 {
			checks[i].Decision.Source = algorithms.Shared
		}
	}
	return err
}

// TestAlone: the badge is not green while more than one percent of the decisions are made without Redis.
func TestAlone(t *testing.T) {
	for lost, want := range map[int]string{1: "good Healthy", 2: "warn 2 % of the decisions are made without Redis"} {
		page := statuspage.New(nil)
		m := shownOn(t, page, &lossy{algorithms.NewMemory(nil), lost}, ratelimit.Options{}, byIP("p", algorithms.TokenBucket(1000, 1e9)))
		for range 100 {
			record(m.Handler(ok), from("192.0.2.1"))
		}
		v := look(t, page)
		if got := v.Health.Class + " " + v.Health.Text; got != want {
			t.Errorf("%d of 100: got the badge %q, want %q", lost, got, want)
		}
	}
}
