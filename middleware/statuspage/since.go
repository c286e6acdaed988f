// Since when something lasts: the troubles, and the state of each circuit.
//
// The page looks when an operator reads it, and, on a goroutine that then ends, at the
// first request of each five seconds. So each instant is when the page noticed something.
// Example: Redis fails at 12:00:01. The next request comes at 12:00:30, and the
// page shows "since 12:00:30".

package statuspage

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const lookEvery = 5 * time.Second // while requests come

// noticed holds when the page noticed the present states.
type noticed struct {
	looked  atomic.Int64 // the last period of lookEvery
	looking atomic.Bool  // a goroutine looks

	mu       sync.Mutex           // guards the fields below
	since    map[string]time.Time // by the ids of troubles, and of circuits that have ever opened
	troubled bool                 // there was a trouble at the last look
	healthy  time.Time            // since when there is none
	findings []algorithms.Finding // of the limiters, when an operator read the page last
}

// note sets since when the circuits and the troubles of v last. It requires mu.
func (n *noticed) note(v *view) {
	present := make(map[string]time.Time)
	since := func(id string) time.Time {
		present[id] = cmp.Or(n.since[id], v.At)
		return present[id]
	}
	for i := range v.Limiters {
		if l := &v.Limiters[i]; l.Trips > 0 || l.Breaker == "open" {
			l.Since = since(l.state())
		}
	}
	v.Troubles = v.troubles()
	for i := range v.Troubles {
		if t := &v.Troubles[i]; t.Since.IsZero() {
			t.Since = since(t.id)
		}
	}
	troubled := len(v.Troubles) > 0
	if n.troubled && !troubled {
		n.healthy = v.At
	}
	n.since, n.troubled = present, troubled
}

// lookSoon notes troubles also while no operator reads the page. No request waits
// for that.
func (p *Page) lookSoon(now time.Duration) {
	n := &p.noticed
	period := int64(now / lookEvery)
	if looked := n.looked.Load(); period > looked && n.looked.CompareAndSwap(looked, period) && n.looking.CompareAndSwap(false, true) {
		go p.look(now)
	}
}

// look notes troubles. A limiter of another module may have Stats that panic.
func (p *Page) look(now time.Duration) {
	n := &p.noticed
	defer n.looking.Store(false)
	defer func() { _ = recover() }()
	v, _ := p.survey(now)
	n.mu.Lock()
	defer n.mu.Unlock()
	v.Findings = append(v.Findings, n.findings...)
	n.note(v)
}
