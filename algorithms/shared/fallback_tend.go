// The goroutine of a fallback. It closes the circuit again, announces this
// instance, and hands back units that were admitted without the primary.
//
//	closed ── trips ──> open ── a probe succeeds ──> hand-back, at most 0.3 s ──> closed
//
// Each open circuit has a goroutine that probes its master.
//
// A hand-back sends a key's debt as one backfill, which charges as many units as
// fit, as of now. It comes before the circuit closes, so the first calls find
// these units charged; the rest follows later. Each key is a call of its own: the
// keys of a Cluster are in many slots, and a slot that does not answer must not
// delay the others.
//
// A debt is charged at most once. If its reply is lost, Redis may have charged it,
// so the units count as lost and are not sent again. A debt that was certainly
// not executed stays in the ledger. Kept Returns are sent first, because the units
// that come back make room for debts.
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
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/circuit"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

const (
	beatEvery     = 5 * time.Second // instances announce themselves
	handBackEvery = time.Second
	refusedFor    = handBackEvery * 4 / 5 // then the next tick sends it again
	bypassedFor   = 10 * time.Second      // until then it waits, unless a circuit closes

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
	tick, beats := time.Tick(handBackEvery), time.Tick(beatEvery)
	for f.beat(); ; {
		select {
		case <-f.closing.Done():
			f.handBack(time.Now().Add(handBackFor))
			f.retire()
			return
		case <-beats:
			f.beat()
		case <-tick:
			f.handBack(time.Now().Add(handBackEvery))
		case <-f.ledger.urgent:
			f.handBack(time.Now().Add(handBackEvery))
		}
	}
}

// turned reports an opening or a closing of a circuit, before any call meets it,
// and starts the probes of an open one. It runs under the breaker's lock.
func (f *fallback) turned(c *circuit.Circuit, open bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := f.counts()
	now := f.circuits.Set(c, open)
	if !open {
		for i := range counts {
			counts[i] -= f.opened[i]
		}
		f.report.circuitClosed(counts)
		return
	}
	if now == 1 {
		f.opened = counts
	}
	f.report.circuitOpened(now, c.Cause(), c.TakeExcused())
	if f.closing.Err() == nil {
		f.tending.Go(func() { f.recover(c) })
	}
}

// recover probes the master of an open circuit until the circuit or the fallback
// is closed.
func (f *fallback) recover(c *circuit.Circuit) {
	for n := 0; ; n++ {
		select {
		case <-f.closing.Done():
			return
		case <-time.After(circuit.Pause(n)):
		}
		key, ok := f.primary.probeKey(c, fmt.Sprintf("%s-%d", f.id, n))
		if !ok {
			f.turned(c, false) // no call asks its master any more
			f.ledger.hurry()
			return
		}
		closed := c.Try(func() error {
			err := f.probe(key)
			if err == nil { // before calls ask the primary
				f.ledger.hurry() // what was refused while the circuit was open
				f.handBack(time.Now().Add(handBackFor))
			}
			return err
		})
		if closed {
			f.handBack(time.Now().Add(handBackFor)) // for calls that were under way
			return
		}
	}
}

// probePolicy is the policy of the keys that probes write.
const probePolicy = "penstock~probe"

// probe writes to the primary, because a primary that is read-only or full also
// answers a ping.
func (f *fallback) probe(key string) error {
	c, _ := newCall([]algorithms.Check{{ // it is valid
		Policy: probePolicy, Key: key, Limit: algorithms.FixedWindow(1, time.Second), Op: algorithms.Force, Cost: 1,
	}})
	defer c.free()
	return f.askBounded(c)
}

// askBounded asks the primary for the fallback itself. Circuits do not count the
// call, and an open circuit lets it pass while it is tried.
func (f *fallback) askBounded(c *call) error {
	c.ours = true
	ctx, cancel := context.WithTimeout(context.Background(), max(f.deadline, probeFor))
	defer cancel()
	return f.primary.allow(ctx, c)
}

// handBack sends kept Returns and then debts to the primary, until the end, or until the primary answers
// none of several. What belongs to a master that is bypassed is not sent, so it ends nothing.
func (f *fallback) handBack(end time.Time) {
	debts := func() []sending { return f.ledger.popDebts(f.now()) }
	for _, pop := range [...]func() []sending{f.ledger.popReturns, debts} {
		for more := true; more && time.Now().Before(end); {
			var calls sync.WaitGroup
			var answered atomic.Bool
			for _, s := range pop() {
				calls.Go(func() {
					if err := f.send(s); err == nil || errors.Is(err, trouble.ErrOpen) {
						answered.Store(true)
					}
				})
			}
			calls.Wait()
			more = answered.Load()
		}
	}
}

func (f *fallback) send(s sending) error {
	defer s.call.free()
	err := f.askBounded(s.call)
	if s.call.settled != nil {
		go func() { s.ended(<-s.call.settled) }()
	} else {
		s.ended(err)
	}
	return err
}

// beat announces this instance, and learns how many there are: a higher number
// counts at once, a lower one after all instances had the time to announce
// themselves again. If beat fails, the last number stays.
func (f *fallback) beat() {
	ctx, cancel := context.WithTimeout(f.closing, beatEvery/5)
	defer cancel()
	sent := f.views.now()
	live, err := f.primary.beat(ctx, f.id)
	defer func() {
		f.views.announced(sent, f.instances.Load(), err == nil)
		f.views.find(f.report)
	}()
	if err != nil {
		f.fewerSince = time.Time{} // the primary may lose its data
		if f.closing.Err() == nil && err != trouble.ErrOpen {
			f.report.failed(trouble.AsTimeout(err))
		}
		return
	}
	fewer := live < f.instances.Load()
	if fewer && f.fewerSince.IsZero() {
		f.fewerSince = time.Now()
	}
	if fewer && time.Since(f.fewerSince) < liveFor {
		return
	}
	f.fewerSince = time.Time{}
	f.instances.Store(max(1, live))
}

// retire withdraws this instance. If that fails, its place expires.
func (f *fallback) retire() {
	ctx, cancel := context.WithTimeout(context.Background(), min(f.deadline, time.Second))
	defer cancel()
	_ = f.primary.retire(ctx, f.id)
}
