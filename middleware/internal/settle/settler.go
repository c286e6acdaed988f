package settle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	// Timeout bounds a settlement. The context of its request has ended, or may end
	// at any time.
	Timeout = time.Second

	// maxWaiting bounds the waiting settlements, to about 4 MB. Settlements that
	// count denials have half of the room: a flood of denials must not crowd out
	// returns.
	maxWaiting   = 10_000
	maxOfDenials = maxWaiting / 2

	// workers bounds the settlements in progress. A shared limiter batches them.
	workers = 32
)

// A Settler makes the settlements of a Middleware, off the path of requests:
// net/http holds the end of a response until its handler has returned. Its
// goroutines end when no settlement waits. It is safe for concurrent use.
type Settler struct {
	Limiter algorithms.Limiter
	AtOnce  bool // for a Memory: the work takes less time than starting a goroutine

	// InForce returns the limit that is in force now for a check of an earlier
	// request. Done receives each settlement of a policy that was made, and each that failed. It does not receive
	// settlements that the limiter keeps, because a store did not answer.
	InForce func(policy, tier string, c *algorithms.Check) algorithms.Limit
	Done    func(Report)

	mu      sync.Mutex
	waiting []settlement
	running int
	idle    chan struct{} // closed when no settlement is left; nil then
}

// A Report is a settlement that was made, or failed with Err.
type Report struct {
	Policy  string // "": a count towards a ban, or the renewal of a hold
	Elapsed time.Duration
	Err     error
	Dropped bool // too many settlements were waiting
}

// A settlement is work that a request leaves behind.
type settlement struct {
	policy string // whose units are charged or returned; "": only failures are reported
	denial bool   // it counts a denial
	do     func(context.Context) error
	since  time.Time
}

// Settle makes a settlement of a policy, as Soon does.
func (s *Settler) Settle(policy string, c algorithms.Check) bool {
	checks := [1]algorithms.Check{c}
	return s.Soon(policy, false, func(ctx context.Context) error {
		if err := s.Limiter.Allow(ctx, checks[:]); err != nil {
			return err
		}
		if checks[0].Decision.Source == algorithms.Undecided {
			return errNotMade
		}
		return nil
	})
}

// Soon does work at once if AtOnce says so, and otherwise as Later does.
func (s *Settler) Soon(policy string, denial bool, do func(context.Context) error) bool {
	if s.AtOnce {
		s.report(settlement{policy: policy, since: time.Now()}, do(context.Background()))
		return true
	}
	return s.Later(policy, denial, do)
}

// Later does work soon, on another goroutine, and reports false if too much is waiting.
// denial says that the work counts a denial.
func (s *Settler) Later(policy string, denial bool, do func(context.Context) error) bool {
	if s.add(settlement{policy: policy, denial: denial, do: do, since: time.Now()}) {
		return true
	}
	s.Done(Report{Policy: policy, Err: fmt.Errorf("%w: %w", ErrNotSettled, errBusy), Dropped: true})
	return false
}

func (s *Settler) add(work settlement) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.waiting); n >= maxWaiting || (work.denial && n >= maxOfDenials) {
		return false
	}
	s.waiting = append(s.waiting, work)
	if s.running == 0 {
		s.idle = make(chan struct{})
	}
	if s.running < workers {
		s.running++
		go s.run()
	}
	return true
}

func (s *Settler) run() {
	for work, more := s.next(); more; work, more = s.next() {
		ctx, cancel := context.WithTimeout(context.Background(), Timeout)
		err := work.do(ctx)
		cancel()
		s.report(work, err)
	}
}

// errNotMade says that no store has answered: the limiter keeps settlements for later, or has let them fail open.
var errNotMade = errors.New("not made yet")

func (s *Settler) report(work settlement, err error) {
	if (work.policy != "" || err != nil) && err != errNotMade {
		s.Done(Report{Policy: work.policy, Elapsed: time.Since(work.since), Err: err})
	}
}

// next returns the settlement that has waited longest. If there is none, the calling
// goroutine must end.
func (s *Settler) next() (settlement, bool) {
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

// Wait waits until no settlement is left, or until ctx ends, whose error it returns.
func (s *Settler) Wait(ctx context.Context) error {
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
