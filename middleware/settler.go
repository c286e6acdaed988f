package middleware

import (
	"context"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	// settleTimeout bounds a settlement. The context of its request has ended,
	// or may end at any time.
	settleTimeout = time.Second

	// maxSettlements bounds those that wait, about 4 MB of them.
	maxSettlements = 10_000

	// settlers bounds those that are being made. A shared limiter takes what
	// comes together in one round trip.
	settlers = 32
)

// A settler makes settlements off the path of requests: net/http holds the end
// of a response until its handler has returned. Its goroutines end when there
// is nothing left to do.
type settler struct {
	made func(settlement, error)

	mu      sync.Mutex
	waiting []settlement
	running int
	idle    chan struct{} // closed when nothing is left to do; nil then
}

// A settlement is what is left to do of a request, and the policy it is for.
type settlement struct {
	policy string
	do     func(context.Context) error
	since  time.Time
}

// add makes a settlement soon, and reports false if too many are waiting.
func (s *settler) add(work settlement) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) >= maxSettlements {
		return false
	}
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

// wait waits until nothing is left to do, or until ctx ends, whose error it
// returns.
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

// next takes what has waited longest. If there is nothing, the goroutine that
// asks must end.
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
	s.waiting[0] = settlement{} // what it holds is garbage soon
	s.waiting = s.waiting[1:]
	return work, true
}

// settle settles units of a check that was decided, soon, as later does. A
// Memory takes less time than it takes to wait.
func (m *Middleware) settle(policy string, c algorithms.Check, op algorithms.Op, units int64) bool {
	c.Op, c.Cost = op, units
	do := func(ctx context.Context) error { return m.limiter.Allow(ctx, []algorithms.Check{c}) }
	if m.alone {
		work := settlement{policy: policy, do: do, since: time.Now()}
		m.settled(work, do(context.Background()))
		return true
	}
	return m.later(policy, do)
}

// later does soon what is left to do of a request. It reports false if that
// cannot be done, which is observed.
func (m *Middleware) later(policy string, do func(context.Context) error) bool {
	if m.settler.add(settlement{policy: policy, do: do, since: time.Now()}) {
		return true
	}
	m.troubles.log("too many settlements are waiting; reservations stay charged", ErrBusy)
	if m.observer != nil {
		m.observer.Observe(context.Background(), Event{Kind: SettleDropped, Policy: policy})
	}
	return false
}

// settled is told of a settlement that was made, or could not be.
func (m *Middleware) settled(work settlement, err error) {
	if err != nil {
		m.troubles.log("a settlement could not be made; its reservation stays charged", err)
	}
	if m.observer != nil {
		m.observer.Observe(context.Background(), Event{
			Kind: Settled, Policy: work.policy, Err: err, Elapsed: time.Since(work.since),
		})
	}
}
