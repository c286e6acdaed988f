// Slots: the waits of clients that share an exhausted limit.
//
// The honest wait of a shared limit sends all denied clients back at one instant, and the limit admits one of them. So
// each denied client gets an instant of its own, its slot. The slots of a limit (a policy and its key) form a line:
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
// Instances do not know each other's lines. Each of N instances meets a share of the clients, and may use 1/N of the
// rate for them. So a denial moves the line by N places, and a hash of the client chooses one of these:
//
//	slot = max(line, now + wait) + (1 + hash mod N) cost/rate
//	line = max(line, now + wait) + N cost/rate
//
// Two clients of one instance stay 1/rate apart: the first is at most at the end of the old line, and the second at
// least one place behind it.
//
// cost/rate = cost window/requests is seldom a whole number of µs. So a line holds an instant and a rest, at +
// rest/requests µs with 0 <= rest < requests, and never drifts. A slot is rounded up.
//
// A line ends at most maxLine after the honest wait. A client whose place is later returns within the next maxLine, at
// an instant that a hash chooses. So no slot is more than 2 maxLine later than the honest wait. If even the first place
// is later, the limit is too slow for slots: its clients get jitter.

package ratelimit

import (
	"hash/maphash"
	"maps"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	spreading "github.com/penstock-go/penstock/middleware/internal/slots"
)

const (
	// maxLine bounds a line. The longest spread is twice that, and stays below the ten minutes after which many clients
	// give up.
	maxLine = 4 * time.Minute

	// maxSlots bounds the slots of all lines, to about 1 MB. No slot is evicted before it has passed. Further clients
	// get jitter.
	maxSlots = 20_000
)

// slots are the lines of a Middleware, and the slots of its clients. Instants are µs since the Middleware was made. The
// zero value is empty.
type slots struct {
	mu    sync.Mutex // guards the following
	lines map[uint64]line
	taken map[slotOf]int64
	swept int64

	counted   atomic.Int64 // when instances was read
	instances atomic.Int64
}

// A slotOf is a client's place in a line: the hashes of both.
type slotOf struct{ line, client uint64 }

// A line ends at + rest/requests µs.
type line struct{ at, rest, requests int64 }

// A denial is the input of a slot.
type denial struct {
	policy, key string           // of the line
	client      string           // the denied client
	limit       algorithms.Limit // not Concurrent: its rate is unknown
	cost        int64
	wait        int64 // the honest wait in µs
	instances   int64 // that share the limit
}

// wait returns the µs until the client's slot. It returns false if there is no room
// for one, or if the limit is too slow for slots.
func (s *slots) wait(d *denial, now int64) (int64, bool) {
	of := slotOf{line: bits.RotateLeft64(maphash.String(keySeed, d.policy), 1) ^ maphash.String(keySeed, d.key)}
	of.client = maphash.String(keySeed, d.client)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now)
	slot, found := s.taken[of]
	if found && slot > now {
		return max(slot-now, d.wait), true
	}
	if !found && max(len(s.taken), len(s.lines)) >= maxSlots {
		return 0, false
	}
	slot, moved := s.lines[of.line].next(d, now)
	if slot == 0 {
		return 0, false
	}
	if s.lines == nil {
		s.lines, s.taken = make(map[uint64]line), make(map[slotOf]int64)
	}
	s.lines[of.line], s.taken[of] = moved, slot
	return slot - now, true
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

// next returns the slot of a client that is denied now, and the line with it. The slot is 0 if the limit is too slow
// for slots.
func (l line) next(d *denial, now int64) (slot int64, moved line) {
	requests, honest := d.limit.Requests(), now+d.wait
	if l.requests != requests { // the limit has changed
		l = line{at: l.ceil(), requests: requests}
	}
	if l.at < honest {
		l = line{at: honest, requests: requests}
	}
	cost, end := max(d.cost, 1), honest+maxLine.Microseconds()
	if first := (line{at: honest, requests: requests}); first.plus(d, cost).ceil() > end {
		return 0, l
	}
	mine := l.plus(d, cost*(1+d.part(d.instances, l.at)))
	if mine.ceil() > end {
		return end + d.part(maxLine.Microseconds(), now/maxLine.Microseconds()), l
	}
	if moved = l.plus(d, cost*d.instances); moved.ceil() > end {
		moved = line{at: end, requests: requests} // no client has the places after it
	}
	return mine.ceil(), moved
}

// plus returns the line after units more, or one that ends too late for everyone.
func (l line) plus(d *denial, units int64) line {
	hi, lo := bits.Mul64(uint64(units), uint64(d.limit.Window().Microseconds()))
	lo, carry := bits.Add64(lo, uint64(l.rest), 0)
	if hi += carry; hi >= uint64(l.requests) {
		return line{at: math.MaxInt64, requests: l.requests}
	}
	whole, rest := bits.Div64(hi, lo, uint64(l.requests))
	if whole > uint64(math.MaxInt64-l.at) {
		return line{at: math.MaxInt64, requests: l.requests}
	}
	return line{at: l.at + int64(whole), rest: int64(rest), requests: l.requests}
}

func (l line) ceil() int64 {
	if l.rest > 0 {
		return l.at + 1
	}
	return l.at
}

// part returns a number below n, by a hash of the client.
func (d *denial) part(n, slot int64) int64 {
	return int64(spreading.Jitter(time.Duration(n), d.policy, d.client, slot))
}

// countInstances returns how many instances share the limiter, as far as the limiter knows. It asks the limiter at most
// once a second.
func (s *slots) countInstances(l algorithms.Limiter, now int64) int64 {
	counted := s.counted.Load()
	if n := s.instances.Load(); n > 0 && now-counted < sweepEvery.Microseconds() || !s.counted.CompareAndSwap(counted, now) {
		return max(n, 1)
	}
	n := int64(1)
	for ; l != nil; l = unwrap(l) {
		if stats, ok := l.(interface{ Stats() algorithms.Stats }); ok {
			n = max(n, int64(stats.Stats().Fallback.Instances))
			break
		}
	}
	s.instances.Store(n)
	return n
}
