// The goroutine of a fallback. It closes the circuit again, announces this
// instance, and hands back units that were admitted without the primary.
//
//	closed ── trips ──> open ── a probe succeeds ──> hand-back, at most 0.3 s ──> closed
//
// A hand-back sends a key's debt as one backfill, which charges as many units as
// fit, as of now. It comes before the circuit closes, so the first calls find
// these units charged; the rest follows later. Each key is a call of its own: the
// keys of a Cluster are in many slots, and a slot that does not answer must not
// delay the others.
//
// A debt is sent at most once. If its reply is lost, Redis may have charged it,
// so the units count as lost and are not sent again. A debt that was certainly
// not executed goes back to the ledger.
//
// Instances. Every 5 s the goroutine announces this instance and learns how
// many are live. A lower count is used only after 15 s. Otherwise, when Redis
// has lost its data, the first instance to announce itself would be alone and
// take whole limits for its share. Example: 4 instances, and Redis restarts
// empty. The beats count 1, then 3, then 4 within 5 s, so each share stays a
// quarter.

package shared

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	beatEvery     = 5 * time.Second // instances announce themselves
	handBackEvery = time.Second

	// probeFor bounds a probe, and a hand-back: a caller's deadline would be too
	// short for a dial after an outage.
	probeFor = 100 * time.Millisecond

	// handBackFor bounds the hand-back before calls go to the primary again.
	// The rest follows afterwards.
	handBackFor = 300 * time.Millisecond
	// handBackKeys is how many keys are handed back at once.
	handBackKeys = 64
)

// tend runs until close.
func (f *fallback) tend() {
	f.beat()
	beat, handBack := time.NewTicker(beatEvery), time.NewTicker(handBackEvery)
	defer beat.Stop()
	defer handBack.Stop()
	for {
		select {
		case <-f.closing.Done():
			f.retire()
			return
		case <-f.circuit.tripped:
			f.recover()
		case <-beat.C:
			f.beat()
		case <-handBack.C:
			if !f.circuit.open.Load() {
				f.handBack(time.Now().Add(handBackEvery))
			}
		}
	}
}

// recover returns when the circuit or the fallback is closed.
func (f *fallback) recover() {
	f.circuit.opened()
	for n := 0; ; n++ {
		if !f.sleep(f.circuit.pause(n)) {
			return
		}
		if f.circuit.try(func() error { return f.attempt(n) }) {
			break
		}
	}
	f.handBack(time.Now().Add(handBackFor)) // for calls that were under way
	f.fewerSince = time.Time{}              // the primary may have lost its data
	f.beat()
}

// turned reports an opening or a closing of the circuit, before any call meets
// it. It runs under the breaker's lock.
func (f *fallback) turned(open bool) {
	s, before := &f.stats, f.opened
	f.opened = [3]uint64{s.local.Load(), s.passed.Load(), s.refused.Load()}
	if open {
		f.report.circuitOpened(f.circuit.lastCause())
	} else {
		f.report.circuitClosed(f.opened[0]-before[0], f.opened[1]-before[1], f.opened[2]-before[2])
	}
}

// sleep reports whether it was not interrupted by close.
func (f *fallback) sleep(d time.Duration) bool {
	select {
	case <-f.closing.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// attempt is the n-th probe. If it succeeds, it hands back units before calls
// may ask the primary.
func (f *fallback) attempt(n int) error {
	if err := f.probe(n); err != nil {
		return err
	}
	f.handBack(time.Now().Add(handBackFor))
	return nil
}

// probePolicy is the policy of the keys that probes write.
const probePolicy = "penstock~probe"

// probe writes to the primary, because a primary that is read-only or full also
// answers a ping. In a Cluster every probe goes to another slot.
func (f *fallback) probe(n int) error {
	c, err := newCall([]algorithms.Check{{
		Policy: probePolicy, Key: fmt.Sprintf("%s-%d", f.id, n), Limit: algorithms.FixedWindow(1, time.Second),
		Op: algorithms.Force, Cost: 1,
	}})
	if err != nil {
		return err
	}
	defer c.free()
	return f.askBounded(c)
}

// askBounded asks the primary for the goroutine itself, also while the circuit is
// open.
func (f *fallback) askBounded(c *call) error {
	ctx, cancel := context.WithTimeout(f.closing, max(f.deadline, probeFor))
	defer cancel()
	err := f.primary.allow(ctx, c)
	if err != nil && f.closing.Err() != nil {
		return context.Canceled // the end of a call that close has ended says nothing
	}
	return ownDeadline(err)
}

// handBack sends debts to the primary, until the end, or until it answers none
// of several.
func (f *fallback) handBack(end time.Time) {
	for time.Now().Before(end) && f.closing.Err() == nil {
		debts := f.owed.pop(handBackKeys)
		if len(debts) == 0 {
			return
		}
		var calls sync.WaitGroup
		var answered atomic.Bool
		for _, d := range debts {
			calls.Go(func() {
				if f.backfill(d) == nil {
					answered.Store(true)
				}
			})
		}
		calls.Wait()
		if !answered.Load() {
			return
		}
	}
}

// backfill sends the debt of one key. A call that is not answered in time
// counts as sending, and so as owed, until its late answer.
func (f *fallback) backfill(d *debt) error {
	c, units := d.call(f.now())
	if c == nil {
		f.owed.sending.Add(-1)
		return nil
	}
	defer c.free()
	sent := func(err error) {
		switch {
		case err == nil:
			f.stats.handedBack.Add(uint64(units))
		case troubleOf(err).executed: // perhaps, and it must not be charged twice
			f.stats.lost.Add(uint64(units))
		default:
			f.owed.restore(d, f.now())
		}
		f.owed.sending.Add(-1)
	}
	c.late = sent
	err := f.askBounded(c)
	if err == nil || !c.underWay {
		sent(err)
	}
	return err
}

// beat announces this instance, and learns how many there are. If it fails, the
// last number stays.
func (f *fallback) beat() {
	if f.circuit.open.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(f.closing, beatEvery/5)
	defer cancel()
	live, err := f.primary.beat(ctx, f.id)
	if err != nil {
		if f.closing.Err() == nil {
			f.report.failedQuietly(ownDeadline(err))
		}
		return
	}
	f.counted(max(1, live))
}

// counted adopts a count of the live instances: a higher one at once, a lower
// one after all instances had the time to announce themselves again. See the
// head of this file.
func (f *fallback) counted(live int64) {
	now := time.Now()
	if live >= f.instances.Load() {
		f.fewerSince = time.Time{}
	} else {
		if f.fewerSince.IsZero() {
			f.fewerSince = now
		}
		if now.Sub(f.fewerSince) < liveFor {
			return
		}
		f.fewerSince = now
	}
	f.instances.Store(live)
}

// retire withdraws this instance. If that fails, its place expires.
func (f *fallback) retire() {
	if f.circuit.open.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), f.deadline)
	defer cancel()
	_ = f.primary.retire(ctx, f.id)
}
