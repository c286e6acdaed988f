package settle

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A request holds its units of a concurrent limit until its handler returns. The
// middleware renews them a few times before their hold would end.
const (
	// MinHold is the shortest hold of a concurrent limit. Shorter ones would make
	// renewals most of the traffic.
	MinHold = time.Second

	renewals = 3
)

// concurrent reports whether the request holds the reserved units while it is
// served.
func (one *reservation) concurrent() bool { return one.check.Limit.Algorithm().Concurrent() }

// renewEvery returns how often the request's holds are renewed; 0 if it has
// none.
func (r *Reservations) renewEvery() time.Duration {
	var least time.Duration
	for i := range r.all {
		one := &r.all[i]
		if !one.concurrent() {
			continue
		}
		if every := r.inForce(one, algorithms.Renew).Window() / renewals; least == 0 || every < least {
			least = every
		}
	}
	return least
}

// keepHolding renews the holds until the request ends.
func (r *Reservations) keepHolding() {
	every := r.renewEvery()
	if every == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began = time.Now()
	r.renewal = time.AfterFunc(every, func() {
		r.settler.Later("", false, r.renew) // in one queue with the rest: Close waits for it
		every := r.renewEvery()             // the limit may have changed
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.ended {
			r.renewal.Reset(every)
		}
	})
}

// renew renews the holds, unless the request has ended. If the request ends
// during a renewal, the last renewal returns the holds: a renewal after the
// return would hold the unit again.
func (r *Reservations) renew(ctx context.Context) error {
	r.mu.Lock()
	if r.ended {
		r.mu.Unlock()
		return nil
	}
	r.renewing++
	var checks []algorithms.Check
	for i := range r.all {
		if one := &r.all[i]; one.concurrent() {
			c := one.check
			c.Op, c.Limit = algorithms.Renew, r.inForce(one, algorithms.Renew)
			checks = append(checks, c)
		}
	}
	r.mu.Unlock()
	err := r.settler.Limiter.Allow(ctx, checks)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renewing--
	if r.ended && r.renewing == 0 {
		r.returnHolds()
	}
	return err
}

func (r *Reservations) returnHolds() {
	for i := range r.all {
		if one := &r.all[i]; one.concurrent() {
			r.later(one, algorithms.Return, one.check.Cost)
		}
	}
}

const remembered = 16 // holds of a policy

// Holds are how long the last requests of a policy held units of its concurrent
// limit, in this process. The zero value has none; Holds are safe for concurrent
// use.
type Holds struct {
	mu    sync.Mutex
	last  [remembered]time.Duration
	ended int
}

func (h *Holds) add(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last[h.ended%remembered] = d
	h.ended++
}

// Median returns the median of the last sixteen holds, at least MinHold and at most
// the longest; without any, the longest. A denied client learns it, because the
// limiter cannot know when a running request ends.
func (h *Holds) Median(longest time.Duration) time.Duration {
	h.mu.Lock()
	n := min(h.ended, remembered)
	sorted := h.last
	h.mu.Unlock()
	if n == 0 {
		return longest
	}
	slices.Sort(sorted[:n])
	return min(max(sorted[n/2], MinHold), longest)
}
