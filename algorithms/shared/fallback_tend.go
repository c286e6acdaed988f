// The goroutine of a fallback. It closes the circuit again, makes this instance
// known, and hands back units that were admitted without the primary.
//
// A hand-back sends a key's debt as backfills, each with the instant of its
// charge by the primary's clock. Each key is a call of its own: the keys of a
// Cluster are in many slots, and a slot that does not answer must not take
// others with it.

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
	beatEvery     = 5 * time.Second // instances make themselves known
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

// recover returns when the circuit is closed again, or the fallback.
func (f *fallback) recover() {
	s := &f.stats
	local, passed, refused := s.local.Load(), s.passed.Load(), s.refused.Load()
	f.circuit.opened()
	f.report.circuitOpened(f.circuit.lastCause())
	for n := 0; ; n++ {
		if !f.sleep(f.circuit.pause(n)) {
			return
		}
		if f.circuit.try(func() error { return f.attempt(n) }) {
			break
		}
	}
	f.handBack(time.Now().Add(handBackFor)) // for calls that were under way
	f.report.circuitClosed(s.local.Load()-local, s.passed.Load()-passed, s.refused.Load()-refused)
	f.fewerSince = time.Time{} // the primary may have lost its data meanwhile
	f.beat()
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

// attempt is the n-th probe. If it succeeds, a hand-back follows before others may
// ask the primary.
func (f *fallback) attempt(n int) error {
	if err := f.probe(n); err != nil {
		return err
	}
	f.handBack(time.Now().Add(handBackFor))
	return nil
}

// probePolicy is the policy of the keys that probes write.
const probePolicy = "penstock~probe"

// probe writes to the primary, because a primary that only reads, or is full,
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

// handBack sends debts to the primary, until the end, or until none of several is
// answered.
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

// backfill sends the debt of one key. A call that is not answered in time counts as
// sending, and so as owed, until its late answer.
func (f *fallback) backfill(d *debt) error {
	c, units := d.call(f.now(), f.skew.Load())
	if c == nil {
		f.owed.sending.Add(-1)
		return nil
	}
	defer c.free()
	sent := func(err error) {
		switch {
		case err == nil:
			f.stats.handedBack.Add(units)
		case troubleOf(err).executed: // perhaps, and it must not be charged twice
			f.stats.lost.Add(units)
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

// beat makes this instance known, and learns how many there are. While it
// cannot, the last number stands.
func (f *fallback) beat() {
	if f.circuit.open.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(f.closing, beatEvery/5)
	defer cancel()
	live, skew, err := f.primary.beat(ctx, f.id)
	if err != nil {
		if f.closing.Err() == nil {
			f.report.failed(ownDeadline(err))
		}
		return
	}
	f.counted(max(1, live))
	f.skew.Store(skew.Microseconds())
}

// counted follows a count of the live instances. A lower count is believed once
// counts have been lower for as long as all instances take to make themselves
// known again: after the primary has lost its data, the first instance to do so
// is alone there, and would take whole limits for its share.
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
