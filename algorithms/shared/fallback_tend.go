package algorithms

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	beatEvery     = 5 * time.Second // instances make themselves known
	handBackEvery = time.Second

	// The first attempt after a while of dial errors may get an old one from
	// the client's pool, which looks once a second whether it can dial again.
	attemptFor   = 1500 * time.Millisecond
	attemptEvery = 100 * time.Millisecond
	// handBackFor bounds what is told to the primary before calls go to it
	// again; the rest is told afterwards.
	handBackFor = 300 * time.Millisecond
	// handBackKeys is of how many keys it is told at once.
	handBackKeys = 64
)

// A registrar is a primary that knows the live instances.
type registrar interface {
	// beat makes an instance known, and returns how many there are, and how far
	// the primary's clock is ahead of ours.
	beat(ctx context.Context, id string) (live int64, skew time.Duration, err error)
	retire(ctx context.Context, id string) error
}

func nowMicro() int64 { return time.Now().UnixMicro() }

func (f *Fallback) now() int64 { return nowMicro() }

// tend is the goroutine of a Fallback: it closes the circuit again, makes this
// instance known, and tells the primary what was admitted without it.
func (f *Fallback) tend() {
	defer close(f.closed)
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

// recover returns when the circuit is closed again, or the Fallback.
func (f *Fallback) recover() {
	f.observe(Event{Kind: EventOpened, Err: f.circuit.lastCause()})
	for !f.circuit.try(f.attempt) {
		if !f.sleep(attemptEvery) {
			return
		}
	}
	f.handBack(time.Now().Add(handBackFor)) // of calls that were under way
	f.observe(Event{Kind: EventClosed})
	f.fewerSince = time.Time{} // the primary may have lost its data meanwhile
	f.beat()
}

// sleep reports whether it was not interrupted by Close.
func (f *Fallback) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-f.closing.Done():
		return false
	case <-timer.C:
		return true
	}
}

// attempt writes a key to the primary, again and again for a while: the first
// success means that it is back, and it is told what happened meanwhile.
func (f *Fallback) attempt() (err error) {
	end := time.Now().Add(attemptFor)
	for i := 0; ; i++ {
		if err = f.probe(i); err == nil {
			f.handBack(time.Now().Add(handBackFor))
			return nil
		}
		if time.Now().Add(attemptEvery).After(end) || !f.sleep(attemptEvery) {
			return err
		}
	}
}

// probe writes, since a primary that only reads, or is full, answers a ping. In
// a Cluster every attempt goes to another slot.
func (f *Fallback) probe(attempt int) error {
	return f.askWithin(f.closing, max(f.deadline, attemptEvery), []Check{{
		Policy: "penstock~probe", Key: fmt.Sprintf("%s-%d", f.id, attempt),
		Limit: FixedWindow(1, time.Second), Cost: 1, Op: Force,
	}})
}

// handBack tells the primary what is owed, until the end, or until it hears
// nothing. Each key is told by itself: those of a Cluster are in many slots,
// and one that does not answer must not take others with it.
func (f *Fallback) handBack(end time.Time) {
	for time.Now().Before(end) && f.closing.Err() == nil {
		debts := f.owed.pop(handBackKeys)
		if len(debts) == 0 {
			return
		}
		var tellers sync.WaitGroup
		var heard atomic.Bool
		for _, d := range debts {
			tellers.Go(func() {
				if f.tell(d) == nil {
					heard.Store(true)
				}
			})
		}
		tellers.Wait()
		f.owed.told(len(debts))
		if !heard.Load() {
			return
		}
	}
}

// tell tells the primary of one key, whose checks are one script. What fails is
// owed still, unless it may have been charged: then it is lost, and must not be
// told twice.
func (f *Fallback) tell(d *debt) error {
	checks := d.checks(f.now())
	if len(checks) == 0 {
		return nil
	}
	var units uint64
	for i := range checks {
		units += uint64(checks[i].Cost)
		checks[i].Decision.Receipt.at += f.skew.Load()
	}
	err := f.askWithin(f.closing, max(f.deadline, attemptEvery), checks)
	switch {
	case err == nil:
		f.stats.handedBack.Add(units)
	case troubleOf(err).executed:
		f.stats.lost.Add(units)
	default:
		f.owed.restore(d, f.now())
	}
	return err
}

// beat makes this instance known, and learns how many there are. While it
// cannot, the last number stands.
func (f *Fallback) beat() {
	p, ok := f.primary.(registrar)
	if !ok || f.circuit.open.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(f.closing, beatEvery/5)
	defer cancel()
	live, skew, err := p.beat(ctx, f.id)
	if err != nil {
		if f.closing.Err() == nil {
			f.observe(Event{Kind: EventError, Err: ownDeadline(err)})
		}
		return
	}
	f.count(max(1, live))
	f.skew.Store(skew.Microseconds())
}

// count takes note of how many instances are live. Fewer than before are
// believed once there have been fewer for as long as it takes all to make
// themselves known again: after the primary has lost its data, the first one to
// do so is alone there, and would take whole limits for its share.
func (f *Fallback) count(live int64) {
	now := time.Now()
	switch {
	case live >= f.instances.Load():
		f.fewerSince = time.Time{}
	case f.fewerSince.IsZero():
		f.fewerSince = now
		return
	case now.Sub(f.fewerSince) < liveFor:
		return
	default:
		f.fewerSince = now
	}
	f.instances.Store(live)
}

func (f *Fallback) retire() {
	p, ok := f.primary.(registrar)
	if !ok || f.circuit.open.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), f.deadline)
	defer cancel()
	_ = p.retire(ctx, f.id) // else its place expires
}
