// The tenants of all instances that share a limiter.
//
// With sticky sessions, an instance sees some of the tenants only. So the limiter counts the present tenants, too, in the
// keyspace "<policy>~tenants": a fixed window as long as a tenant stays. Its units are the weights of the tenants that an
// instance has announced in it. Each tenant has a mark, a window of one unit, beside it. An announcement takes from both,
// in one call. So a tenant that several instances announce is counted once: the second announcement is denied by the
// mark, and charges nothing.
//
// The sum of all weights is the largest of what this instance has seen, of the present window, and of the window before,
// because a window begins with no tenants. An instance announces each tenant once in a window. Each tenth of a window,
// its first request announces, too, so that the instance learns what the others have announced.
//
// A window of this instance never ends before that of the limiter does, because the answer needs time to arrive. So no
// announcement comes too early, and is lost.

package shares

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	fleetSuffix = "~tenants"
	fleetKey    = "present"

	// mostWeight is the largest limit of a window: more than any tenants have.
	mostWeight = 1_000_000_000
)

// A fleet is what the limiter has said about the tenants of all instances. The lock of its Table guards it.
type fleet struct {
	window       int64         // the number of the present window; 0 before the first answer
	ends         time.Duration // when it ends
	weight, last int64         // of the tenants in it, and in the one before
	asked        int64         // the last tenth in which the limiter was asked
}

// roll begins the windows that have begun until now.
func (f *fleet) roll(now, stay time.Duration) {
	if f.window == 0 || now < f.ends {
		return
	}
	if f.last = 0; now < f.ends+stay {
		f.last = f.weight
	}
	f.weight, f.window = 0, f.window+1
	f.ends += (now-f.ends)/stay*stay + stay
}

// answer reads an answer of the limiter: a weight in the window that ends at a time.
func (f *fleet) answer(weight int64, ends, stay time.Duration) {
	if f.window == 0 {
		f.window, f.weight, f.ends = 1, weight, ends
		return
	}
	if ends > f.ends+stay/2 {
		f.roll(f.ends, stay)
	}
	if ends < f.ends-stay/2 { // the window has ended meanwhile
		f.last = max(f.last, weight)
		return
	}
	f.weight, f.ends = max(f.weight, weight), ends
}

// Announce announces a tenant for which Ask has returned true. The times of the Table are since begin.
func (t *Table) Announce(ctx context.Context, l algorithms.Limiter, policy, tenant string, weight int64, begin time.Time) {
	stay := t.tenth * tenths
	checks := []algorithms.Check{
		{Policy: policy + fleetSuffix, Key: fleetKey + "|" + tenant, Limit: algorithms.FixedWindow(1, stay), Cost: 1, Fail: algorithms.FailClosed, Exact: true},
		{Policy: policy + fleetSuffix, Key: fleetKey, Limit: algorithms.FixedWindow(mostWeight, stay), Cost: weight, Fail: algorithms.FailClosed, Exact: true},
	}
	if l.Allow(ctx, checks) != nil || checks[1].Decision.Source != algorithms.Shared {
		t.Alone()
		return
	}
	d := &checks[1].Decision
	t.mu.Lock()
	defer t.mu.Unlock()
	at := time.Since(begin)
	t.fleet.roll(at, stay)
	t.fleet.answer(mostWeight-d.Remaining, at+d.ResetAfter, stay)
}

// Alone forgets the tenants of other instances, because this instance divides what it may admit alone.
func (t *Table) Alone() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fleet.weight, t.fleet.last = 0, 0
}
