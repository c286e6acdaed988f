package ratelimit

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	// settleTimeout bounds a settlement. The context of its request has ended,
	// or may end at any time.
	settleTimeout = time.Second

	// maxSettlements bounds the waiting settlements, to about 4 MB. Settlements
	// that count denials have half of the room: a flood of denials must not
	// crowd out returns.
	maxSettlements = 10_000
	maxOfDenials   = maxSettlements / 2

	// settlers bounds the settlements in progress. A shared limiter batches
	// them.
	settlers = 32
)

// A settler makes settlements off the path of requests: net/http holds the end of a
// response until its handler has returned. Its goroutines end when no settlement
// waits.
type settler struct {
	made func(settlement, error)

	mu      sync.Mutex
	waiting []settlement
	running int
	idle    chan struct{} // closed when no settlement is left; nil then
}

// A settlement is work that a request leaves behind.
type settlement struct {
	policy string // whose units are charged or returned; "": not reported
	denial bool   // it counts a denial
	do     func(context.Context) error
	since  time.Time
}

// add makes a settlement soon, and reports false if too many are waiting.
func (s *settler) add(work settlement) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.waiting); n >= maxSettlements || (work.denial && n >= maxOfDenials) {
		return false
	}
	work.since = time.Now()
	s.waiting = append(s.waiting, work)
	if s.running == 0 {
		s.idle = make(chan struct{})
	}
	if s.running < settlers {
		s.running++
		go s.run()
	}
	return true
}

func (s *settler) run() {
	for {
		work, ok := s.next()
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
		err := work.do(ctx)
		cancel()
		s.made(work, err)
	}
}

// wait waits until no settlement is left, or until ctx ends, whose error it returns.
func (s *settler) wait(ctx context.Context) error {
	s.mu.Lock()
	idle := s.idle
	s.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// next returns the settlement that has waited longest. If there is none, the calling
// goroutine must end.
func (s *settler) next() (settlement, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.waiting = nil
		if s.running--; s.running == 0 {
			close(s.idle)
			s.idle = nil
		}
		return settlement{}, false
	}
	work := s.waiting[0]
	s.waiting[0] = settlement{} // so that its memory can be freed
	s.waiting = s.waiting[1:]
	return work, true
}

// settle makes the settlements of a request soon, through later. With a Memory
// it makes them at once: that takes less time than starting a goroutine.
func (m *Middleware) settle(policy string, settlements ...algorithms.Check) bool {
	work := settlement{policy: policy, do: func(ctx context.Context) error {
		return m.limiter.Allow(ctx, settlements)
	}}
	if m.alone {
		work.since = time.Now()
		m.settled(work, work.do(context.Background()))
		return true
	}
	return m.later(work)
}

// later does the work soon, and reports false if too much work is waiting.
func (m *Middleware) later(work settlement) bool {
	if m.settler.add(work) {
		return true
	}
	if work.policy == "" {
		m.troubles.log("dropped count towards a ban, or renewal of a hold", errBusy)
		return false
	}
	m.troubles.log("dropped settlement", errBusy, "policy", work.policy)
	m.observe(context.Background(), &Event{Kind: Settled, Policy: work.policy, Err: fmt.Errorf("%w: %w", ErrNotSettled, errBusy)})
	return false
}

// settled reports a settlement, or why it failed.
func (m *Middleware) settled(work settlement, err error) {
	if err != nil {
		m.troubles.log("failed settlement", err, "policy", work.policy)
	}
	if work.policy != "" {
		m.observe(context.Background(), &Event{Kind: Settled, Policy: work.policy, Err: err, Elapsed: time.Since(work.since)})
	}
}
