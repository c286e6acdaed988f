// Calls that arrive at a steady pace, however long each takes.

package shared

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// An arrival is one call, and how it ended.
type arrival struct {
	began, ended time.Time
	check        algorithms.Check
	err          error
}

// byRedis reports whether Redis decided the call.
func (a *arrival) byRedis() bool { return a.err == nil && a.check.Decision.Source == algorithms.Shared }

// arrivals are calls of one limiter.
type arrivals struct {
	limiter *Limiter
	dismiss func() // waits for the last calls

	mu  sync.Mutex
	all []arrival
}

// startArrivals begins a call in each interval. The i-th call has the check that
// next returns. Only ErrUnavailable may be an error of a call.
func startArrivals(t *testing.T, l *Limiter, every time.Duration, next func(i int) algorithms.Check) *arrivals {
	c := &arrivals{limiter: l}
	stop := make(chan struct{})
	var calls sync.WaitGroup
	c.dismiss = sync.OnceFunc(func() {
		close(stop)
		calls.Wait()
	})
	t.Cleanup(c.dismiss)
	calls.Go(func() {
		pause := time.NewTicker(every)
		defer pause.Stop()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-pause.C:
				calls.Go(func() { c.call(t, next(i)) })
			}
		}
	})
	return c
}

func (c *arrivals) call(t *testing.T, check algorithms.Check) {
	checks := []algorithms.Check{check}
	a := arrival{began: time.Now()}
	a.err = c.limiter.Allow(context.Background(), checks)
	a.ended, a.check = time.Now(), checks[0]
	if a.err != nil && !errors.Is(a.err, algorithms.ErrUnavailable) {
		t.Errorf("%s: %v", check.Key, a.err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, a)
}

// of returns the calls that have ended and that a condition selects.
func (c *arrivals) of(selects func(a *arrival) bool) (selected []arrival) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.all {
		if a := &c.all[i]; selects(a) {
			selected = append(selected, *a)
		}
	}
	return selected
}

// between returns the calls that began in a time, and how many of them Redis
// decided.
func (c *arrivals) between(from, to time.Time) (calls []arrival, byRedis int) {
	calls = c.of(func(a *arrival) bool { return a.began.After(from) && a.began.Before(to) })
	for i := range calls {
		if calls[i].byRedis() {
			byRedis++
		}
	}
	return calls, byRedis
}

// awaitRedis waits until Redis decides a call that began at an instant or later,
// and returns when the first such call ended.
func (c *arrivals) awaitRedis(t *testing.T, from time.Time) (since time.Time) {
	t.Helper()
	redistest.Until(t, "Redis decides", func() bool {
		decided := c.of(func(a *arrival) bool { return a.byRedis() && !a.began.Before(from) })
		for i := range decided {
			if since.IsZero() || decided[i].ended.Before(since) {
				since = decided[i].ended
			}
		}
		return decided != nil
	})
	return since
}

// units returns the units that calls were admitted with.
func (c *arrivals) units() (units int64) {
	for _, a := range c.of(func(a *arrival) bool { return a.err == nil && a.check.Decision.Allowed }) {
		units += a.check.Cost
	}
	return units
}

// percent is for logs.
func percent(part, of int) string {
	return fmt.Sprintf("%d of %d, %.0f %%", part, of, 100*float64(part)/float64(max(1, of)))
}
