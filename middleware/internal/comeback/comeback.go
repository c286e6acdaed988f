// Package comeback answers one question: when may this denied request return?
//
// The honest wait says when the limit can admit the request. If it sends several clients back at one instant, the limit
// admits one of them and denies the others again. So the answer is honest first, then spread, and always bounded:
//
//	Who waits                           First answer     Further answers              At most later
//	one client, or its workers          the honest wait  the next free instant        30 s (line of a client, client.go)
//	many clients of one limit           a slot           the same slot until it ends  8 min (line of slots, slots.go)
//	clients of an aligned window        jitter           the same jitter              30 s (Jitter)
//	one client of a hidden policy       the honest wait  the honest wait              0
//	clients of a Concurrent limit       the honest wait  the honest wait              0
//	a request that no wait helps        Never            Never                        0
//
// Spreading only lengthens a wait.
//
// # Lines
//
// Both kinds of lines move by cost/rate, the time in which the limit refills the units of a request. cost/rate =
// cost window/requests is seldom a whole number of µs. So a line holds an instant and a rest, at + rest/requests µs with
// 0 <= rest < requests, and never drifts. The answer is rounded up.
//
// Instances that share a limiter keep the line of a client there (fleet.go). They do not know each other's lines of slots.
// Each of N instances meets a share of the denials, and may use 1/N of the rate for them. So a denial moves the line by N
// places, and is given one of these.
package comeback

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/internal/wrapped"
)

var seed = maphash.MakeSeed()

// A Denial is a denied check.
type Denial struct {
	Policy, Key string // of the check
	Client      string // the denied client, for slots and jitter
	Shared      bool   // many clients share the limit
	Hidden      bool   // the policy is hidden
	Limit       algorithms.Limit
	Cost        int64
	Wait        time.Duration // the honest wait
	Reset       time.Duration // until the full limit is back
	Fleet       bool          // the instances decide together
}

// A Table holds the lines of limits. It is safe for concurrent use.
type Table struct {
	limiter   algorithms.Limiter
	made      time.Time
	instances instances
	slots     slots
	clients   clients
}

// New returns an empty table for the denials of a limiter.
func New(limiter algorithms.Limiter) *Table { return &Table{limiter: limiter, made: time.Now()} }

// Wait returns how long the client of a denial waits, from now on. It is at least the honest wait.
func (t *Table) Wait(ctx context.Context, d *Denial) time.Duration {
	algorithm := d.Limit.Algorithm()
	switch {
	case d.Wait == algorithms.Never, algorithm.Concurrent(): // of a Concurrent limit, the rate is unknown
		return d.Wait
	case !d.Shared && algorithm.Aligned():
		return d.jittered(time.Now())
	case !d.Shared && d.Hidden:
		return d.Wait
	}
	now := time.Since(t.made).Microseconds()
	p := place{now: now, honest: now + d.Wait.Microseconds(), cost: max(d.Cost, 1), limit: d.Limit, instances: t.instances.of(t.limiter, now)}
	p.line = bits.RotateLeft64(maphash.String(seed, d.Policy), 1) ^ maphash.String(seed, d.Key)
	if !d.Shared {
		return time.Duration(t.worker(ctx, d, &p)) * time.Microsecond
	}
	if slot, ok := t.slots.next(&p, d); ok {
		return time.Duration(slot-now) * time.Microsecond
	}
	return d.jittered(time.Now())
}

// worker returns the wait of a client in µs, whose workers share its limit.
func (t *Table) worker(ctx context.Context, d *Denial, p *place) int64 {
	p.later = maxLater.Microseconds()
	if !p.limit.Algorithm().Continuous() { // the units of a burst come back as a burst: nobody waits for longer than that
		p.later = min(p.later, max(d.Reset-d.Wait, 0).Microseconds())
	}
	if d.Fleet && p.instances > 1 {
		if wait, ok := t.fleet(ctx, d, p); ok {
			return wait
		}
	}
	return t.clients.next(p) - p.now
}

// instances count the instances that share a limiter. The zero value has counted
// none.
type instances struct {
	counted atomic.Int64 // when n was read
	n       atomic.Int64
}

// of returns how many instances share the limiter, as far as the limiter knows. now is in µs. It asks the limiter at
// most once a second.
func (i *instances) of(l algorithms.Limiter, now int64) int64 {
	counted := i.counted.Load()
	if n := i.n.Load(); n > 0 && now-counted < time.Second.Microseconds() || !i.counted.CompareAndSwap(counted, now) {
		return max(n, 1)
	}
	n := int64(1)
	if counter, ok := wrapped.Find[wrapped.Counter](l); ok {
		n = max(n, int64(counter.Stats().Fallback.Instances))
	}
	i.n.Store(n)
	return n
}

// A place is what a line needs to know of a denial. Instants are µs since the table was made.
type place struct {
	line        uint64 // the hash of the policy and its key
	now, honest int64  // the limit can admit the request at honest
	cost        int64  // at least 1
	limit       algorithms.Limit
	instances   int64 // that share the limit
	later       int64 // of a client: at most this much later than honest
}

// A line ends at + rest/requests µs.
type line struct{ at, rest, requests int64 }

// under returns the line of a limit that may have changed.
func (l line) under(limit algorithms.Limit) line {
	if requests := limit.Requests(); l.requests != requests {
		return line{at: l.ceil(), requests: requests}
	}
	return l
}

// plus returns the line after units more, or one that ends too late for everyone.
func (l line) plus(limit algorithms.Limit, units int64) line {
	hi, lo := bits.Mul64(uint64(units), uint64(limit.Window().Microseconds()))
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

// Jitter returns an addition to a client's wait, from 0 to less than spread, so
// that clients do not return together at the end of a window.
//
// The result depends on the arguments alone, so all instances and tries agree.
// client is the client's key. slot changes with the window, e.g. its end in
// Unix seconds.
func Jitter(spread time.Duration, policy, client string, slot int64) time.Duration {
	if spread <= 0 {
		return 0
	}
	// Other versions must compute the same hash, so it never changes. The
	// length distinguishes ("a", "bc") from ("ab", "c").
	var array [256]byte
	text := binary.BigEndian.AppendUint64(array[:0], uint64(len(policy)))
	text = append(text, policy...)
	text = binary.BigEndian.AppendUint64(text, uint64(slot))
	text = append(text, client...)
	sum := sha256.Sum256(text)

	// The high half of the product is spread · hash / 2^64, exactly.
	part, _ := bits.Mul64(uint64(spread), binary.BigEndian.Uint64(sum[:]))
	return time.Duration(part)
}

// jittered returns the wait with jitter: up to a tenth of the window, from 1 to 30 s. All instances and all tries get
// the same jitter.
func (d *Denial) jittered(now time.Time) time.Duration {
	limit := d.Limit
	spread := min(max(limit.Window()/10, time.Second), 30*time.Second)
	slot := now.UnixNano() / int64(spread)
	if limit.Algorithm().Aligned() {
		// The end of the window, rounded because clocks differ a little. w divides all window ends, counted from the
		// epoch. Calendar periods end at whole minutes, because today's time zones differ from UTC by whole minutes.
		w := limit.Window().Microseconds()
		if limit.Algorithm().Calendar() {
			w = time.Minute.Microseconds()
		}
		slot = (now.UnixMicro() + d.Wait.Microseconds() + w/2) / w
	}
	return d.Wait + Jitter(spread, d.Policy, d.Client, slot)
}
