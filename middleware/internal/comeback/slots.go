// Slots: the line of a limit that many clients share.
//
// Each denied client gets an instant of its own, its slot. The slots of a limit (a policy and its key) form a line:
//
//	slot = max(slot, now + wait) + cost/rate
//
// At now + wait the limiter can admit this request. From then on the limit refills cost units in every cost/rate. When
// the k-th client in the line returns, the units of k + 1 requests have come back: k for the clients of the line, and
// one for a newcomer. Because of the maximum, no slot is earlier than the honest wait. Clients of a line are at least
// 1/rate apart.
//
// Example: a limit of 60 per minute, cost 1, is empty, and wait is 1 s. Three clients are denied at t = 0. Their slots
// are 2, 3 and 4 s. By 2 s two units have come back.
//
// A client keeps its slot until the slot has passed, however often the client asks. With a new slot for each denial,
// one poller would push all other clients away.
//
// Of the N places of N instances, a hash of the client chooses one:
//
//	slot = max(line, now + wait) + (1 + hash mod N) cost/rate
//	line = max(line, now + wait) + N cost/rate
//
// Two clients of one instance stay 1/rate apart: the first is at most at the end of the old line, and the second at
// least one place behind it.
//
// A line ends at most maxLine after the honest wait. A client whose place is later returns within the next maxLine, at
// an instant that a hash chooses. So no slot is more than 2 maxLine later than the honest wait. If even the first place
// is later, the limit is too slow for slots: its clients get jitter.

package comeback

import (
	"hash/maphash"
	"maps"
	"sync"
	"time"
)

const (
	// maxLine bounds a line. The longest spread is twice that, and stays below the ten minutes after which many clients
	// give up.
	maxLine = 4 * time.Minute

	// maxSlots bounds the slots of all lines, to about 1 MB. No slot is evicted before it has passed. Further clients
	// get jitter.
	maxSlots = 20_000

	sweepEvery = time.Second
)

// slots are the lines of limits, and the slots of their clients. The zero value is empty.
type slots struct {
	mu    sync.Mutex // guards the following
	lines map[uint64]line
	taken map[slotOf]int64
	swept int64
}

// A slotOf is a client's place in a line: the hashes of both.
type slotOf struct{ line, client uint64 }

// next returns the client's slot. It returns false if there is no room for one, or if the limit is too slow for slots.
func (s *slots) next(p *place, d *Denial) (int64, bool) {
	of := slotOf{line: p.line, client: maphash.String(seed, d.Client)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(p.now)
	slot, found := s.taken[of]
	if found && slot > p.now {
		return max(slot, p.honest), true
	}
	if !found && max(len(s.taken), len(s.lines)) >= maxSlots {
		return 0, false
	}
	slot, moved := s.lines[of.line].slot(p, d)
	if slot == 0 {
		return 0, false
	}
	if s.lines == nil {
		s.lines, s.taken = make(map[uint64]line), make(map[slotOf]int64)
	}
	s.lines[of.line], s.taken[of] = moved, slot
	return slot, true
}

// sweep forgets slots and lines that have passed. It requires the lock.
func (s *slots) sweep(now int64) {
	if now-s.swept < sweepEvery.Microseconds() {
		return
	}
	s.swept = now
	maps.DeleteFunc(s.taken, func(_ slotOf, slot int64) bool { return slot <= now })
	maps.DeleteFunc(s.lines, func(_ uint64, l line) bool { return l.at < now })
	if len(s.taken) == 0 && len(s.lines) == 0 {
		s.taken, s.lines = nil, nil // a map does not shrink
	}
}

// slot returns the slot of a client that is denied now, and the line with it. The slot is 0 if the limit is too slow
// for slots.
func (l line) slot(p *place, d *Denial) (slot int64, moved line) {
	requests, end := p.limit.Requests(), p.honest+maxLine.Microseconds()
	if l = l.under(p.limit); l.at < p.honest {
		l = line{at: p.honest, requests: requests}
	}
	if first := (line{at: p.honest, requests: requests}); first.plus(p.limit, p.cost).ceil() > end {
		return 0, l
	}
	mine := l.plus(p.limit, p.cost*(1+d.part(p.instances, l.at)))
	if mine.ceil() > end {
		return end + d.part(maxLine.Microseconds(), p.now/maxLine.Microseconds()), l
	}
	if moved = l.plus(p.limit, p.cost*p.instances); moved.ceil() > end {
		moved = line{at: end, requests: requests} // no client has the places after it
	}
	return mine.ceil(), moved
}

// part returns a number below n, by a hash of the client.
func (d *Denial) part(n, slot int64) int64 {
	return int64(Jitter(time.Duration(n), d.Policy, d.Client, slot))
}
