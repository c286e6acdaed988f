// The life of a batch: the groups that a sender sends at once.
//
//	           gather           send              answer
//	 (queued) ───────> held ────────────> sent ───────────> answered
//	    │               │ └───── answer ─────────────────────^
//	    │ leave, shed   │ expire            │ expire
//	    v               v                   v
//	 (ended)          unsent             overdue
//
//	queued    Groups wait in their lane; there is no batch yet. A group whose
//	          caller leaves, or that has waited for too long, ends here.
//	held      The client has the batch, and has not read it. A client that
//	          cannot connect goes on trying after the deadline. So the client
//	          receives the name of a script only when it writes the command.
//	sent      The client has read the name of a script, so Redis may have
//	          executed it.
//
// A batch has three ends:
//
//	answered  The trips ended within the deadline, perhaps with an error. The
//	          callers receive their answers, or why there is none.
//	unsent    The deadline passed before the client read anything. The callers
//	          receive trouble.ErrUnsent. Redis executed nothing, and never will.
//	overdue   The deadline passed after the client had read a name. The callers
//	          receive trouble.ErrTimeout. Perhaps Redis executes the scripts.
//
// Example: the deadline is 50 ms, and Redis is down. The client dials for 5 s.
// At 50 ms the batch is held, so it ends unsent: its calls are certainly not
// charged. Had the client written the command at 49 ms, the batch would be
// overdue, and the charge unknown.
//
// answer and expire need the lane's mutex, so exactly one of them ends a batch.
// send does not need it, because the client's goroutine must not wait: it is
// atomic.
//
// A batch holds one of its lane's places in flight. A batch that expires gives
// its place to another. The lane counts it as stuck until the client returns.
//
// A caller may leave a group in flight, and an overdue batch leaves all its
// groups. When the client returns, the calls of these groups learn how they
// ended: see shared_pending.go.

package shared

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

// The phases of a batch.
const (
	phaseHeld uint32 = iota
	phaseSent
	phaseAnswered
	phaseUnsent
	phaseOverdue
)

// A batch is the groups that a sender sends at once, as one script per slot.
// Idle batches are pooled, with all buffers.
type batch struct {
	lane   *lane
	ctx    context.Context // of the trips
	cancel context.CancelFunc
	timer  *time.Timer // runs expire

	phase    atomic.Uint32
	groups   []*group
	err      error       // why nothing is sent
	endTrip  func(error) // the circuit's, which receives the outcome; nil if there is none
	now      int64       // µs: the instant that the scripts receive; 0: the server's
	due      int64       // µs, monotonic: when the callers give up
	opaque   bool        // its client is: a text of a command may be what it sends
	together int         // the batches in flight when it was filled, including itself
	scripts  []script
	trips    []redis.Cmder // the commands of the next trip
}

func newBatch() any {
	b := new(batch)
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.timer = time.AfterFunc(time.Hour, b.expire)
	b.timer.Stop()
	return b
}

// A group is the part of a call that one script decides.
type group struct {
	items  []*item
	lane   *lane
	denied int // takes outside of the group
	slot   uint16
	ours   bool // sent for the limiter itself: also while the circuit is open, and the circuit does not count it
	closed bool // it has a check that fails closed: a reply that comes after a refusal lets the units be returned

	weight int // added to the batch

	// Guarded by the lane's mu:
	queued    time.Time
	batch     *batch // in flight, whose end the caller waits for
	abandoned bool   // the caller has stopped waiting, though Redis may execute the group; final once the batch has ended

	call      *call       // learns the end of a group that was left; nil: no call does
	next      *group      // in the tally of its key
	err       error       // why the batch has no answer for it
	done      chan error  // with room for one: its end
	whenEnded func(error) // instead of done, if no caller waits; must not block
}

// end tells whoever waits that the group has ended.
func (g *group) end(err error) {
	if g.whenEnded != nil {
		g.whenEnded(err)
		return
	}
	g.done <- err
}

// reset empties b, and keeps its buffers. All its groups must have ended.
func (b *batch) reset() {
	for i := range b.scripts {
		b.scripts[i].reset()
	}
	b.phase.Store(phaseHeld)
	b.err, b.endTrip = nil, nil
	b.groups, b.scripts, b.trips = b.groups[:0], b.scripts[:0], b.trips[:0]
}

// leave gives up a group, and reports whether it did: false if the group has
// ended. A queued group will never be sent. A group in flight may still be
// executed.
func (l *lane) leave(g *group) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, g); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		return true
	}
	if g.batch == nil {
		return false
	}
	g.abandoned, g.batch = true, nil
	return true
}

// shed ends the groups at the head of the queue that have been waiting for the
// whole deadline, or all groups. It reports whether there are any. It requires
// mu.
func (l *lane) shed(all bool, err error) bool {
	oldest := time.Now().Add(-l.redis.deadline)
	n := 0
	for n < len(l.queue) && (all || l.queue[n].queued.Before(oldest)) {
		l.queue[n].end(err)
		n++
	}
	l.queue = slices.Delete(l.queue, 0, n)
	return n > 0
}

// send is called when the client reads what it is about to write: held -> sent.
// It reports whether the client may write it. A client may read more than once,
// and may write a batch that has become overdue.
func (b *batch) send() bool {
	return b.phase.CompareAndSwap(phaseHeld, phaseSent) || b.phase.Load() != phaseUnsent
}

// expired reports whether the deadline has ended the batch.
func (b *batch) expired() bool { return b.phase.Load() >= phaseUnsent }

// answer ends the batch within its deadline: held, sent -> answered. It reports
// whether it did. From then on the sender owns the groups. It requires mu.
func (b *batch) answer() bool {
	if b.expired() {
		return false
	}
	b.phase.Store(phaseAnswered)
	for _, g := range b.groups {
		g.batch = nil
	}
	return true
}

// expire ends the batch at its deadline: held -> unsent, sent -> overdue. It
// informs the circuit before it wakes the callers, because their next calls
// must find the circuit open.
//
// It also ends the groups that have been waiting behind the batch for as long.
// If no other batch has ended recently, it ends all groups in the queue,
// because they would wait as long again.
func (b *batch) expire() {
	// Last: it ends whatever the client waits for before it reads a reply, such
	// as a connection. By then the batch must have expired.
	defer b.cancel()
	l := b.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.phase.Load() >= phaseAnswered { // just in time: the sender wakes the callers
		return
	}
	err := trouble.ErrTimeout
	if b.phase.CompareAndSwap(phaseHeld, phaseUnsent) {
		err = trouble.ErrUnsent
	} else {
		b.phase.Store(phaseOverdue)
	}
	if now := monotonic(); b.endTrip != nil && l.circuit.excuses(b.due, now) {
		l.redis.report.excused.Add(1)
		b.tell(trouble.ErrProcessLate)
	} else {
		b.tell(err)
	}
	l.redis.report.failed(err)
	for _, g := range b.groups {
		if !g.abandoned {
			g.abandoned, g.batch = err == trouble.ErrTimeout, nil
			g.end(err)
		}
	}
	l.flight.failed()
	l.overdueAt = time.Now()
	silent := time.Since(l.lastEnd) > l.redis.deadline/2
	l.shed(silent, trouble.ErrUnsent)
	l.inFlight--
	l.flying -= len(b.groups)
	l.stuck++
	l.start()
}

// finish ends a batch whose trips have ended. It wakes the callers that still
// wait, and tells the calls of groups that were left how they ended. It reports
// whether the batch still has its place in flight. If it has, and several groups, its
// worker awaits callers.
func (b *batch) finish() (inTime bool) {
	stopped := b.timer.Stop()
	l := b.lane
	l.mu.Lock()
	if inTime = b.answer(); inTime {
		l.lastEnd = time.Now()
		l.flying -= len(b.groups)
		if len(b.groups) > 1 {
			l.awaiting++ // callers that wake up are to find it
		}
		if !b.answered() {
			l.flight.failed()
		} else if sent := b.scripts[len(b.scripts)-1].name.sent; sent != 0 {
			now := monotonic()
			l.flight.answered(now, now-sent, b.together, l.redis.inFlight)
			l.redis.trips.add(time.Duration(now-sent) * time.Microsecond)
		}
	} else if l.stuck--; b.answered() && b.phase.Load() == phaseOverdue {
		took := time.Duration(monotonic()-b.scripts[len(b.scripts)-1].name.sent) * time.Microsecond
		l.redis.report.late(took, l.redis.deadline)
		l.redis.trips.add(took)
	}
	l.mu.Unlock()
	if outcome := b.read(); inTime && b.err == nil {
		b.tell(outcome)
	}
	for _, g := range b.groups {
		switch {
		case g.abandoned && g.call != nil:
			g.call.groupEnded(g)
		case inTime && !g.abandoned:
			g.end(g.err) // the group belongs to its caller again
		}
	}
	if !inTime || !stopped { // something may still use the batch
		b.cancel()
		return inTime
	}
	b.reset()
	l.redis.batches.Put(b)
	return true
}
