// The views: what this process knows of the keys. Clients who retry cost Redis nothing,
// and a spent key stays spent while Redis is away.
//
// A view is the latest answer of Redis about a key: its state, and the server's clock.
// Takes only add to the units in use. So a cost that has no room in the state, as it
// will have drained by now, certainly has none, whoever else takes: the view denies it.
// It answers for a second, so its figures are wrong only about what other instances did
// within that second. After that Redis is asked again, and the view remains for the
// fallback: it denies if Redis does not answer. Concurrent limits have no view
// (Row.Remembered): a request of another instance may end at any moment.
//
// A limit that lists its units does not answer with its state. Its view is the latest
// denial: it denies the same cost until that denial's RetryAfter.
//
// Order. Any answer of Redis about the key refreshes its view, settlements included,
// unless the view is newer by the server's clock. One script gives several answers at
// one instant. Takes add, so of two takes the fuller answer is the later one. Beside a
// settlement that takes units off, nobody knows; then the view tells nothing until the
// next answer. An answer that was asked for after the view's answer had come is newer,
// also if the server's clock was set back.
//
// Time. A view denies as of the latest instant that is possible: the state drains from
// the question on, because Redis decided no sooner. Its figures count from the answer,
// because Redis decided no later: waits are never too short.
//
// Example: a check is asked at 0 ms and denied at 10 ms with RetryAfter = 300
// ms. Redis decided at some instant between, so the cost fits between 300
// and 310 ms. The view denies until 300 ms. A call at 200 ms is denied with a wait of
// 110 ms.

package shared

import (
	"context"
	"math"
	"sync/atomic"
	"time"
	"unique"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

const (
	// freshFor is how long a view denies while Redis can answer.
	freshFor = time.Second

	viewShards = 64 // a power of two
)

// A views is the layer that answers from views.
type views struct {
	next   layer
	start  time.Time // instants count from here, by the monotonic clock
	shards [viewShards]viewShard
	denied atomic.Uint64 // calls

	ahead             int64         // per cent of each burst that may be admitted ahead; 0: nothing is
	open              func() bool   // whether a circuit is open
	offset            atomic.Int64  // µs: the clock of the latest answer, less the instant of it; 0: no answer yet
	since, last, live atomic.Int64  // the census: see announced
	charges           atomic.Int64  // under way
	sending           chan struct{} // an element for each charge that is on its way to Redis
	asked             [aheadReasons]atomic.Uint64
	overdrawn         atomic.Uint64 // units
	asking            asking
	closed            atomic.Bool
}

// A view is what this process knows of one key.
type view struct {
	key             step.Key
	limit           unique.Handle[step.Limit]
	t, n, f         int64 // the state of the answer; only if the limit does not list its units
	retryAt, unitAt int64 // its instants; only if the limit lists its units
	now             int64 // µs: the clock of the answer
	asked, answered time.Duration

	// A need of least or more certainly has no room until free, a need of exactly least
	// if the limit lists its units.
	least int64
	free  time.Duration

	unacked int64         // units that were admitted ahead, and that Redis has not acknowledged
	pending int64         // of these, not sent yet
	landed  chan struct{} // closed when all units so far have been charged; nil if no Return waits for that

	old      bool // it denies only if Redis does not answer
	lowered  bool // the answer is of a settlement that takes units off
	unsure   bool // the answer is one of two at the same instant, or outdated: it tells nothing
	seeded   bool // this process's share has begun with the answer
	flies    bool // a charge gathers or was sent
	troubled bool // Redis has not answered the latest charge
}

// newViews returns views of up to about maxKeys keys, without a layer below, which admit ahead per cent of each burst ahead.
func newViews(maxKeys, ahead int, open func() bool) *views {
	v := &views{start: time.Now(), ahead: int64(ahead), open: open, sending: make(chan struct{}, maxSending)}
	for i := range v.shards {
		v.shards[i].most = (maxKeys + viewShards - 1) / viewShards
		v.shards[i].keys, v.shards[i].settled = make(map[uint64]*view), -1
	}
	return v
}

// now returns the instant by which views grow old.
func (v *views) now() time.Duration { return time.Since(v.start) }

// locked locks the shard of an item's key, and returns it and the view of the key, or nil.
func (v *views) locked(it *item) (*viewShard, *view) {
	sh := &v.shards[it.hash%viewShards]
	sh.mu.Lock()
	return sh, sh.find(it)
}

func (v *views) allow(ctx context.Context, c *call) error {
	asked := v.now()
	if !c.asks {
		if v.recall(c, asked, true) {
			v.denied.Add(1)
			return nil
		}
		if v.ahead > 0 && !c.waits && v.admit(c, asked) {
			return nil
		}
	} else if v.ahead > 0 {
		v.cancelOrWait(ctx, c)
	}
	err := v.next.allow(ctx, c)
	if c.known || err != nil && !c.items[0].Op.Settles() {
		return err
	}
	answered := v.now()
	for i := range c.items {
		it := &c.items[i]
		sh, _ := v.locked(it)
		switch {
		case err != nil: // perhaps Redis has executed some
			sh.forget(it, answered)
		case it.decision.Source == algorithms.Shared && (it.Op == step.Take || it.Op.Settles()):
			v.learn(sh, it, asked, answered)
		}
		sh.mu.Unlock()
	}
	return err
}

// recall answers the call if a view denies one of its takes: a fresh view, while Redis
// can answer, and otherwise any view, of a FailLocal take. The other items are allowed
// and Undecided.
func (v *views) recall(c *call, now time.Duration, fresh bool) bool {
	for i := range c.items {
		it := &c.items[i]
		if it.Op != step.Take || !fresh && it.fail != algorithms.FailLocal {
			continue
		}
		sh, w := v.locked(it)
		if w == nil || fresh && (w.old || now >= w.asked+freshFor) || !w.denies(it, now) {
			sh.mu.Unlock()
			continue
		}
		answer, then := step.Answer{T: w.t, N: w.n, F: w.f, RetryAt: w.retryAt, UnitAt: w.unitAt}, w.now+(now-w.answered).Microseconds()
		sh.mu.Unlock()
		if !c.known {
			for j := range c.items {
				c.items[j].decision = algorithms.Decision{Allowed: true}
			}
			c.known = true
		}
		f := it.Later(answer, then)
		it.decision = algorithms.Decision{
			Source: algorithms.Shared, Remaining: f.Remaining,
			RetryAfter: f.RetryAfter, ResetAfter: f.ResetAfter, UnitAfter: f.UnitAfter,
		}
	}
	return c.known
}

// denies reports whether an item certainly has no room now.
func (w *view) denies(it *item, now time.Duration) bool {
	if w.unsure || w.limit.Value() != it.Limit {
		return false
	}
	if !it.Limit.Row.Counted {
		return it.Need == w.least && now < w.free
	}
	if it.Need >= w.least && now < w.free {
		return true
	}
	s := w.state() // it only drains
	return !it.Limit.Fits(s, it.Need) && !it.Limit.Fits(it.Limit.At(s, w.now+(now-w.asked).Microseconds()), it.Need)
}

func (w *view) state() step.State { return step.State{T: w.t, N: w.n, F: w.f} }

// learn adopts an answer of Redis. It requires mu.
func (v *views) learn(sh *viewShard, it *item, asked, answered time.Duration) {
	v.offset.Store(it.Now - answered.Microseconds())
	w, lowers := sh.find(it), it.Op.Settles() && it.Op != step.Force && it.Op != step.Backfill
	if lowers {
		sh.settled = answered
	}
	switch row := it.Limit.Row; {
	case !row.Remembered, !row.Counted && it.Op.Settles():
		sh.forget(it, answered)
		return
	case w == nil:
		if it.decision.Allowed && !(v.ahead > 0 && row.ChargedLater) || sh.settled >= asked { // a settlement may have come after the denial
			return
		}
		if w = sh.add(it, answered); w == nil {
			return
		}
	case asked > w.answered: // newer, whatever the server's clock says
	case it.Now < w.now, it.Now == w.now && !lowers && !w.lowered && it.Answer.N < w.n:
		return
	case it.Now == w.now && (lowers || w.lowered):
		w.unsure = true
		return
	}
	if !it.Limit.Row.Counted && it.decision.Allowed {
		fits := it.decision.ResetAfter == 0 || w.least <= it.decision.Remaining
		w.unsure = w.unsure || fits || w.limit.Value() != it.Limit
		w.old = true // such an answer has no figures of another need
		return
	}
	a := &it.Answer
	w.t, w.n, w.f, w.retryAt, w.unitAt = a.T, a.N, a.F, a.RetryAt, a.UnitAt
	w.limit, w.now, w.asked, w.answered = unique.Make(it.Limit), it.Now, asked, answered
	w.old, w.unsure, w.lowered, w.troubled, w.seeded = false, false, lowers, false, false
	w.least, w.free = it.Need, asked+freshFor
	switch wait := it.decision.RetryAfter; {
	case it.decision.Allowed:
		w.least = math.MaxInt64
	case wait != algorithms.Never:
		w.free = asked + wait
	}
}

// startsWith returns the units of an item's key that are in use as far as its view says, once after each
// answer of Redis, and otherwise 0.
func (v *views) startsWith(it *item) int64 {
	now := v.now()
	sh, w := v.locked(it)
	defer sh.mu.Unlock()
	if w == nil || w.seeded || w.unsure || w.now == 0 || w.limit.Value() != it.Limit || !it.Limit.Row.Counted {
		return 0
	}
	w.seeded = true
	return it.Limit.Used(it.Limit.At(w.state(), w.now+(now-w.asked).Microseconds()))
}

func (v *views) addStats(s *algorithms.Stats) {
	s.Views.Denied = v.denied.Load()
	for i := range v.shards {
		sh := &v.shards[i]
		sh.mu.Lock()
		s.Views.Keys += len(sh.keys)
		for _, w := range sh.keys {
			s.Ahead.Unacknowledged += w.unacked
		}
		sh.mu.Unlock()
	}
	for i, n := range []*uint64{
		askedNot: &s.Ahead.Admitted, askedNear: &s.Ahead.Near, askedAllowance: &s.Ahead.Allowance, askedCensus: &s.Ahead.Census,
		askedBusy: &s.Ahead.Busy, askedUnknown: &s.Ahead.Unknown, askedTrouble: &s.Ahead.Trouble,
	} {
		*n = v.asked[i].Load()
	}
	s.Ahead.Overdrawn = v.overdrawn.Load()
}
