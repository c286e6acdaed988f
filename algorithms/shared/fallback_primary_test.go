// A primary that tests bring into trouble.

package shared

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/algorithms/shared/internal/circuit"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

// The troubles of a primary.
var (
	errRefused   = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}         // not executed
	errLost      = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}       // maybe executed
	errWrongType = errors.New("WRONGTYPE Operation against a key holding the wrong value") // the key's fault
)

// A stateStore is a layer that decides by the steps themselves, and so also
// backfills. It answers as the limiter that all instances share.
type stateStore struct {
	mu     sync.Mutex
	states map[step.Key]step.State
}

func newStateStore() *stateStore { return &stateStore{states: make(map[step.Key]step.State)} }

func (s *stateStore) allow(_ context.Context, c *call) error {
	s.execute(c)
	for i := range c.items {
		if it := &c.items[i]; !it.Dropped {
			it.decide(it.Now, algorithms.Shared)
		}
	}
	return nil
}

// execute gives the items of a call their answers, as a script does. It leaves
// their decisions to the layers.
func (s *stateStore) execute(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now().UnixMicro()
	for _, it := range c.steps.Items {
		if it.Home == it && it.Limit.Row != step.Nobody {
			it.Held.State, it.Held.Exists = s.states[it.Key]
		}
	}
	c.steps.Decide(now, func(*step.Item) bool { return true })
	for i := range c.items {
		it := &c.items[i]
		if it.Home == &it.Item.Item && it.Held.Dirty {
			s.states[it.Key.Clone()] = it.Held.State
		}
		it.Now = now
	}
}

// A fakePrimary is a primary that can be brought into trouble. As the Redis
// layer does, it keeps a deadline, tells the circuit of its users' calls, and
// leaves the group of a call that it has given up.
type fakePrimary struct {
	store    *Limiter // over a stateStore: what the primary holds, for tests
	circuit  *circuit.Circuit
	deadline time.Duration
	ledger   *ledger // of the fallback over it

	bypasses func(*call) bool // calls of a master whose circuit is open; nil: none

	mu        sync.Mutex
	trouble   func(context.Context) error // nil: none
	calls     int                         // checks of users
	probes    []time.Time
	backfills []*item
	sentAt    []time.Time          // of the same places
	overdue   []*call              // calls that were given up and have no reply, in order
	late      map[*call]chan error // receive their replies
	onOverdue func(*call)          // gets each of them before its caller does; nil: nobody does
	givenBack []*item              // by Returns of the limiter itself
	resumed   bool                 // it makes these Returns, whatever the trouble

	live    int64 // instances; 0 at the start: as many as the fallback believes
	err     error // of beats
	beats   int
	retired int
}

func newFakePrimary() *fakePrimary {
	return &fakePrimary{store: over(newStateStore())}
}

func (p *fakePrimary) allow(ctx context.Context, c *call) error {
	if p.circuit.Stops(c.ours) || p.bypasses != nil && p.bypasses(c) {
		return trouble.ErrOpen
	}
	end := func(error) {}
	if !c.ours {
		var err error
		if end, err = p.circuit.Begin(); err != nil {
			return err
		}
	}
	outcome := errors.New("the primary panicked")
	defer func() { end(outcome) }()
	bounded, cancel := context.WithTimeout(ctx, p.deadline)
	defer cancel()
	err := p.decide(bounded, c)
	if outcome = trouble.AsTimeout(err); err != nil && ctx.Err() != nil {
		outcome = context.Canceled // the caller's fault, whatever the error says
	}
	return trouble.AsTimeout(err)
}

func (p *fakePrimary) decide(ctx context.Context, c *call) error {
	fails := p.note(c)
	if fails == nil {
		return p.store.top.allow(ctx, c)
	}
	err := fails(ctx)
	if err == nil {
		return p.store.top.allow(ctx, c)
	}
	c.failed = true
	if !trouble.Of(trouble.AsTimeout(err)).Executed {
		return err
	}
	for i := range c.items {
		it := &c.items[i]
		if it.unknown = true; ctx.Err() == nil && p.ledger != nil {
			p.ledger.doubt(it, err)
		}
	}
	if ctx.Err() != nil {
		p.leave(c)
	}
	return err
}

// leave gives up a call that the primary may still execute.
func (p *fakePrimary) leave(c *call) {
	for i := range c.items {
		it := &c.items[i]
		if it.part = 0; it.Limit.Row.Refill == step.Never || it.Dropped {
			it.part = noPart
		}
	}
	late := make(chan error, 1)
	c.part, c.settled = 0, late
	p.mu.Lock()
	if p.late == nil {
		p.late = make(map[*call]chan error)
	}
	p.overdue, p.late[c] = append(p.overdue, c), late
	first := p.onOverdue
	p.mu.Unlock()
	if first != nil {
		first(c)
	}
}

// reply ends a call that was given up. The primary executes it now, unless err
// says why it does not.
func (p *fakePrimary) reply(c *call, err error) {
	p.mu.Lock()
	p.overdue = slices.DeleteFunc(p.overdue, func(other *call) bool { return other == c })
	p.mu.Unlock()
	if err == nil {
		p.store.top.(*stateStore).execute(c)
		p.mu.Lock()
		p.resumed = true
		p.mu.Unlock()
	}
	p.mu.Lock()
	late := p.late[c]
	p.mu.Unlock()
	late <- err
}

// replyAll ends all calls that were given up, and waits until their fallbacks have acted on it.
func (p *fakePrimary) replyAll(err error) {
	for _, c := range p.overdueCalls() {
		p.reply(c, err)
	}
	synctest.Wait()
}

func (p *fakePrimary) overdueCalls() []*call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.overdue)
}

func (p *fakePrimary) note(c *call) (trouble func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case c.items[0].Key.Policy == probePolicy:
		p.probes = append(p.probes, time.Now())
	case c.items[0].Op == step.Backfill:
		for i := range c.items {
			it := c.items[i]
			p.backfills, p.sentAt = append(p.backfills, &it), append(p.sentAt, time.Now())
		}
	case c.ours && c.items[0].Op == step.Return:
		it := c.items[0]
		if p.givenBack = append(p.givenBack, &it); p.resumed {
			return nil
		}
	default:
		p.calls += len(c.items)
	}
	return p.trouble
}

func (p *fakePrimary) ready(context.Context) error { return nil }

func (p *fakePrimary) probeKey(_ *circuit.Circuit, text string) (string, bool) { return text, true }

func (p *fakePrimary) beat(context.Context, string) (int64, error) {
	if p.circuit.Stops(false) {
		return 0, trouble.ErrOpen
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beats++
	return p.live, p.err
}

func (p *fakePrimary) retire(context.Context, string) error {
	if p.circuit.Stops(false) {
		return trouble.ErrOpen
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retired++
	return nil
}

// counts sets what beats answer. It returns how many there have been.
func (p *fakePrimary) counts(live int64, err error) (beats int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live, p.err = live, err
	return p.beats
}

// fails makes every call fail with err; nil ends that.
func (p *fakePrimary) fails(err error) {
	p.troubled(func(context.Context) error { return err })
}

// hangs lets calls wait until they are given up. reply ends them.
func (p *fakePrimary) hangs() { p.troubled(hang) }

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (p *fakePrimary) troubled(f func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trouble = f
}

// asked returns how many checks of users, and how many probes, have come so far.
func (p *fakePrimary) asked() (users, probes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls, len(p.probes)
}

func (p *fakePrimary) probedAt() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.probes)
}

func (p *fakePrimary) backfilled() []*item {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.backfills)
}

func (p *fakePrimary) returnedLate() []*item {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.givenBack)
}
