package limitertest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/limitertest"
)

// windows is a limiter from scratch: fixed windows, one check per call.
type windows struct {
	now    func() time.Time
	mu     sync.Mutex
	counts map[string]count
}

// A count is what one key has used of the window that began at start.
type count struct{ start, used int64 }

func (w *windows) Allow(_ context.Context, checks []algorithms.Check) error {
	if len(checks) != 1 {
		return errors.New("windows decides one check per call")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &checks[0]
	window, now, most := c.Limit.Window().Microseconds(), w.now().UnixMicro(), c.Limit.Requests()
	key, left := c.Policy+" "+c.Key, time.Duration(window-now%window)*time.Microsecond
	k := w.counts[key]
	if start := now - now%window; k.start != start {
		k = count{start: start}
	}
	d := algorithms.Decision{Allowed: true, Source: algorithms.Local}
	switch {
	case c.Op == algorithms.Return:
		units, start, _, _ := c.Decision.Receipt.State()
		back := min(units, c.Cost)
		if start == k.start {
			k.used -= min(back, k.used)
			w.counts[key] = k
		}
		if units > back {
			d.Receipt = algorithms.NewReceipt(units-back, start, 0, 0)
		}
	case c.Cost <= most-k.used:
		if c.Cost > 0 {
			k.used += c.Cost
			w.counts[key] = k
			d.Receipt = algorithms.NewReceipt(c.Cost, k.start, 0, 0)
		}
	case c.Cost > most:
		d.Allowed, d.RetryAfter = false, algorithms.Never
	default:
		d.Allowed, d.RetryAfter = false, left
	}
	if d.Remaining = max(0, most-k.used); k.used > 0 {
		d.ResetAfter = left
	}
	if d.Remaining == 0 {
		d.UnitAfter = left
	}
	c.Decision = d
	return nil
}

var fixedWindow = algorithms.FixedWindow(1, time.Minute).Algorithm()

// claims are the calls that windows decides. Rules that make others are skipped.
func claims(checks []algorithms.Check) bool {
	if len(checks) != 1 {
		return false
	}
	c := checks[0]
	return c.Limit.Validate() == nil && c.Limit.Algorithm() == fixedWindow && algorithms.ValidatePolicy(c.Policy) == nil && c.Key != "" && c.Cost >= 0 &&
		(c.Op == algorithms.Take || c.Op == algorithms.Return)
}

var foreign = limitertest.Subject{
	New: func(_ testing.TB, now func() time.Time) algorithms.Limiter {
		if now == nil {
			now = time.Now
		}
		return &windows{now: now, counts: map[string]count{}}
	},
	Source: algorithms.Local,
	Claims: claims,
	Except: []string{
		"a late caller is judged in the later window",
		"a step back of the clock opens no second quota, and is stored though the call is denied",
		"under another length of windows a count stays if its last write lies in the present window",
	},
}

func ExampleSubject_foreign() {
	_ = func(t *testing.T) { limitertest.Run(t, foreign) } // in a test of yours: func TestWindows(t *testing.T)

	w := foreign.New(nil, nil)
	checks := []algorithms.Check{{Policy: "api", Key: "usr=42", Limit: algorithms.FixedWindow(10, time.Hour), Cost: 3}}
	err := w.Allow(context.Background(), checks)
	fmt.Println(checks[0].Decision.Remaining, checks[0].Decision.Receipt.Units(), err)
	// Output: 7 3 <nil>
}

// The limiter keeps what it claims, and no rule blames it for the rest.
func TestForeign(t *testing.T) { limitertest.Run(t, foreign) }

// A limiter whose clock tests cannot set is judged where no time has to pass.
func TestRealClock(t *testing.T) {
	limitertest.Run(t, limitertest.Subject{
		New:    func(testing.TB, func() time.Time) algorithms.Limiter { return algorithms.NewMemory(nil) },
		Source: algorithms.Local, RealClock: true,
		Claims: func(checks []algorithms.Check) bool {
			return !slices.ContainsFunc(checks, func(c algorithms.Check) bool {
				a := c.Limit.Algorithm()
				return a.Aligned() || a.Calendar() || a == algorithms.SlidingWindowCounter(1, time.Minute).Algorithm()
			})
		},
	})
}
