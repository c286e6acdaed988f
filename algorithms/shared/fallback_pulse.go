// This process's own lateness, which is no failure of Redis.
//
// On a busy machine a goroutine may wait for its turn for longer than a deadline. Then a batch expires though Redis
// answered it in time, and the circuit would open on a healthy Redis. A slow Redis looks the same from inside, except
// that this process is on time. So the circuit needs to know how late the process was.
//
// The pulse measures that: a goroutine that sleeps for 5 ms at a time, and notes by how much it woke too late. It beats
// only for a second after a batch has expired, so it usually costs nothing. A timer of a batch that fires late is noted
// as well.
//
// If this process was late by more than 10 ms in the time of a batch, the batch's expiry is a suspicion. The reply
// decides:
//
//	the process is to blame  if elapsed - lateness <= deadline + 10 ms, and Redis ran
//	                         the script within the deadline by its own clock
//	a failure                otherwise: Redis or the network is to blame
//
// The 10 ms leave time to read the reply. A late timer alone counts from the deadline on, so it leaves no such time.
//
// Example: the deadline is 50 ms, and the reply comes after 130 ms. The pulse slept from 20 to 115 ms instead of 5 ms,
// so the lateness is 90 ms. 130 - 90 = 40 <= 60: the process was late. With a lateness of 30 ms, 100 > 60: Redis or the
// network is to blame.
//
// Redis's clock alone proves nothing, because the way back may be slow. A suspicion without a reply for a quarter of a
// second becomes a failure at a beat. So a late process still finds out that Redis is gone.

package shared

import (
	"errors"
	"sync"
	"time"
)

const (
	pulsePause = 5 * time.Millisecond
	pulseFor   = time.Second
	punctual   = 10_000 // µs: a shorter delay is no lateness

	// suspectFor is how long a suspicion waits for a reply, in µs.
	suspectFor = 250_000
)

// errOwnLateness is the outcome of a round trip that expired because this process was late.
var errOwnLateness = errors.New("this process was late itself")

// A pulse measures how late this process is. All instants are monotonic, in µs.
type pulse struct {
	mu      sync.Mutex // guards the fields below
	until   int64      // it beats until then
	last    int64      // its latest beat
	beating bool
	closed  bool
	gaps    [64]gap // the latest
	next    int     // the place of the next gap

	each    func(now int64) // at each beat
	running sync.WaitGroup
}

// A gap is a time in which this process should have run, and did not.
type gap struct{ from, to int64 }

// start lets the pulse beat for a second.
func (p *pulse) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := monotonic()
	p.until = now + pulseFor.Microseconds()
	if !p.beating && !p.closed {
		p.beating, p.last = true, now
		p.running.Go(p.run)
	}
}

func (p *pulse) run() {
	for p.beat() {
		if p.each != nil {
			p.each(monotonic())
		}
		time.Sleep(pulsePause)
	}
}

// beat notes a gap since the last beat, if there was one. It reports whether there
// will be another beat.
func (p *pulse) beat() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := monotonic()
	p.add(p.last+pulsePause.Microseconds(), now)
	p.last = now
	p.beating = now < p.until && !p.closed
	return p.beating
}

// missed notes that a timer which was due earlier has fired now.
func (p *pulse) missed(due, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(due, now)
}

// add notes a gap, unless it is short. It requires mu.
func (p *pulse) add(from, to int64) {
	if to-from > punctual {
		p.gaps[p.next] = gap{from, to}
		p.next = (p.next + 1) % len(p.gaps)
	}
}

// lateness returns for how long this process did not run between two instants. Gaps may overlap where two timers noted
// the same time, so each time counts once.
func (p *pulse) lateness(from, to int64) (late int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	gaps := p.gaps
	if p.beating && to-p.last > pulsePause.Microseconds()+punctual {
		gaps[p.next] = gap{p.last + pulsePause.Microseconds(), to} // the present one
	}
	covered := from
	for range gaps { // in the order of their beginnings
		first := gap{to, to}
		for _, g := range gaps {
			if g.to > covered && g.from < first.from {
				first = g
			}
		}
		begin, end := max(first.from, covered), min(first.to, to)
		if begin >= end {
			return late
		}
		late, covered = late+end-begin, end
	}
	return late
}

// close ends the pulse and waits for its goroutine.
func (p *pulse) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.running.Wait()
}

// A suspicion is a round trip that failed while this process was late.
type suspicion struct {
	end   func(outcome error)
	cause error
	until int64 // when it is a failure
}

// suspect holds back the failure of a round trip.
func (c *circuit) suspect(end func(error), cause error, now int64) *suspicion {
	s := &suspicion{end, cause, now + suspectFor}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspicions = append(c.suspicions, s)
	return s
}

// settle ends a suspicion, unless it has ended.
func (c *circuit) settle(s *suspicion, excused bool) {
	outcome := s.cause
	if excused {
		outcome = errOwnLateness
	}
	c.endSuspicions(func(other *suspicion) bool { return other == s }, outcome)
}

// sweep makes failures of the suspicions for which no reply has come.
func (c *circuit) sweep(now int64) {
	c.endSuspicions(func(s *suspicion) bool { return now >= s.until }, nil)
}

// endSuspicions ends some of the suspicions, each with the outcome, or with its
// cause if that is nil.
func (c *circuit) endSuspicions(which func(*suspicion) bool, outcome error) {
	c.mu.Lock()
	if len(c.suspicions) == 0 {
		c.mu.Unlock()
		return
	}
	var ended, kept []*suspicion
	for _, s := range c.suspicions {
		if which(s) {
			ended = append(ended, s)
		} else {
			kept = append(kept, s)
		}
	}
	c.suspicions = kept
	c.mu.Unlock()
	for _, s := range ended {
		if outcome != nil {
			s.end(outcome)
		} else {
			s.end(s.cause)
		}
	}
}
