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

	// maxSettlements bounds those that wait, about 4 MB of them. What a flood
	// of denials brings about has half of the room: it must not crowd out what
	// is to be given back.
	maxSettlements = 10_000
	maxOfDenials   = maxSettlements / 2

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

// A settlement is what is left to do of a request.
type settlement struct {
	policy string // of what is charged or given back late; "" of all else, which is not observed
	denial bool   // it is due to one
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

// settle makes the settlements of a check that was decided, soon, as later does. A
// Memory takes less time than it takes to wait.
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

// later does soon what is left to do of a request. It reports false if that
// cannot be done, which is observed.
func (m *Middleware) later(work settlement) bool {
	if m.settler.add(work) {
		return true
	}
	if work.policy == "" {
		m.troubles.log("too much is waiting to be done after requests; some denials do not count, or holds are not renewed", ErrBusy)
		return false
	}
	m.troubles.log("too many settlements are waiting; reservations stay charged", ErrBusy)
	if m.observer != nil {
		m.observer.Observe(context.Background(), Event{Kind: SettleDropped, Policy: work.policy})
	}
	return false
}

// settled is told of a settlement that was made, or could not be.
func (m *Middleware) settled(work settlement, err error) {
	if err != nil {
		m.troubles.log("what is due after a request could not be done; what was reserved stays charged", err)
	}
	if m.observer != nil && work.policy != "" {
		m.observer.Observe(context.Background(), Event{
			Kind: Settled, Policy: work.policy, Err: err, Elapsed: time.Since(work.since),
		})
	}
}
