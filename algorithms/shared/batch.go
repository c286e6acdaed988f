// The life of a batch: the fate of the groups that a worker sends at once, and
// of the batch's place in flight.
//
//	           gather           send              answer
//	 (queued) ───────> held ────────────> sent ───────────> answered
//	    │               │ ^                │ │
//	    │               │ └── hold ────────┘ │
//	    │ leave, shed   │ expire             │ expire
//	    v               v                    v
//	 (ended)        withdrawn             overdue
//
//	queued     Groups wait in their lane; there is no batch yet. A group whose
//	           caller leaves, or that has waited for too long, ends here.
//	           The limiter never sends any part of it.
//	held       A worker has handed the batch to the client, which has not read
//	           it. A client that cannot connect goes on trying after the
//	           deadline, and its error comes too late to prove that it sent
//	           nothing. So the client receives the name of a script only when it
//	           writes the command. Until then the batch can be withdrawn.
//	sent       The client has read the name of a script, so Redis may have
//	           executed it. If Redis refused all scripts without executing
//	           anything, the batch is held again for another trip.
//	answered   The trips ended within the deadline, perhaps because the client
//	           failed before it read anything. Every caller that still waits
//	           receives its answer, or why there is none.
//	withdrawn  The deadline passed before the client read anything. The callers
//	           have received errUnsent. Redis executed nothing, and never will.
//	overdue    The deadline passed after the client had read a name. The callers
//	           have received errTimeout. Redis may have executed the scripts.
//
// Example: the deadline is 50 ms, and Redis is down. The client dials for 5 s.
// At 50 ms the batch is held, so it is withdrawn: its calls are certainly not
// charged. Had the client written the command at 49 ms, the batch would be
// overdue, and the charge unknown.
//
// answer and expire need the lane's mutex, so exactly one of them ends a batch.
// It also reports the outcome to the circuit, and announces the line of the log
// about a failure, before it wakes any caller; see shared_report.go. send and
// hold do not need the mutex, because the client's goroutine must not wait: they
// are atomic.
//
// A batch of plain commands is sent at once, because late ones do no harm.
//
// A batch holds one of its lane's places in flight. A worker that has sent the
// batch keeps the place for the next one. When the batch expires, or when the
// deadline of one of its callers passes (abandon), the batch is stuck: another
// may be sent in its place, and the lane counts it as stuck until the client
// gives up. A stuck batch that has not expired is answered like any other.

package shared

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// The phases of a batch.
const (
	phaseHeld uint32 = iota
	phaseSent
	phaseAnswered
	phaseWithdrawn
	phaseOverdue
)

// A batch is the groups that a worker sends at once, as one script per slot; or
// one group of plain commands. A worker uses its batch again for the next
// groups, with all buffers, unless the batch is stuck. Idle batches are pooled.
type batch struct {
	lane   *lane
	ctx    context.Context // of the trips
	cancel context.CancelFunc
	timer  *time.Timer // runs expire

	phase    atomic.Uint32
	stuck    bool // another batch may take its place in flight; guarded by the lane's mu
	groups   []*group
	err      error       // why nothing is sent
	endTrip  func(error) // the circuit's, which receives the outcome; nil if there is none
	suspect  *suspicion  // of the circuit, which waits for the reply; nil if there is none
	now      int64       // µs: the instant that the scripts receive; 0: the server's
	due      int64       // µs, monotonic: when the callers give up
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

// A group is the part of a call that one script decides; or plain commands that
// travel together.
type group struct {
	items  []*item
	denied int // takes outside of the group
	plain  []redis.Cmder
	slot   uint16

	weight, size int // added to the batch

	// Guarded by the lane's mu:
	queued time.Time
	batch  *batch // in flight, whose end the caller waits for
	left   bool   // the caller has stopped waiting, though Redis may execute the group; final once the batch has ended

	late func(error) // of the call: receives the end of a group that was left
	next *group      // in the tally of its key
	err  error       // why the batch has no answer for it
	done chan error  // with room for one: its end
}

// settles reports whether the group is of settlements.
func (g *group) settles() bool { return g.items[0].Op.Settles() }

// reset empties g, and keeps its buffers.
func (g *group) reset() {
	clear(g.items)
	*g = group{items: g.items[:0], done: g.done}
}

// reset empties b, and keeps its buffers. All its groups must have ended.
func (b *batch) reset() {
	clear(b.groups)
	clear(b.trips)
	for i := range b.scripts {
		b.scripts[i].reset()
	}
	b.phase.Store(phaseHeld)
	b.err, b.endTrip, b.suspect = nil, nil, nil
	b.groups, b.scripts, b.trips = b.groups[:0], b.scripts[:0], b.trips[:0]
}

// gather fills the batch with the groups at the head of the queue:
// queued -> held. It reports whether there are any. It requires mu.
func (b *batch) gather() bool {
	l := b.lane
	var weight, size int
	most := l.flight.weight()
	for _, g := range l.queue {
		weight, size = weight+g.weight, size+g.size
		full := l.plain || weight > most || size > maxBatchBytes
		if len(b.groups) > 0 && full {
			break
		}
		g.batch = b
		b.groups = append(b.groups, g)
	}
	l.queue = slices.Delete(l.queue, 0, len(b.groups))
	return len(b.groups) > 0
}

// leave gives up a group, and reports whether it did: false if the group has
// ended. A queued group will never be sent. The answer to a group in flight is
// dropped. If a deadline passed, the batch is late; a caller that hung up does
// not make it late.
func (l *lane) leave(ctx context.Context, g *group) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, g); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		return true
	}
	b := g.batch
	if b == nil {
		return false
	}
	g.left, g.batch = true, nil
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		l.abandon(b)
	}
	return true
}

// shed ends the groups at the head of the queue that have been waiting for the
// whole deadline, or all groups. It reports whether there are any. It requires
// mu.
func (l *lane) shed(all bool, err error) bool {
	oldest := time.Now().Add(-l.deadline)
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
	if b.phase.CompareAndSwap(phaseHeld, phaseSent) {
		return true
	}
	phase := b.phase.Load()
	return phase == phaseSent || phase == phaseOverdue
}

// hold is called when nothing of the batch was executed: sent -> held.
func (b *batch) hold() { b.phase.CompareAndSwap(phaseSent, phaseHeld) }

// expired reports whether the deadline has ended the batch.
func (b *batch) expired() bool { return b.phase.Load() >= phaseWithdrawn }

// answer ends the batch within its deadline: held, sent -> answered. It reports
// whether it did. From then on the worker owns the groups. It requires mu.
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

// expire ends the batch at its deadline: held -> withdrawn, sent -> overdue. It
// informs the circuit before it wakes the callers, because their next calls
// must find the circuit open. It announces the line about the cause before that,
// too, because callers log what they refuse.
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
	if b.phase.Load() == phaseAnswered { // just in time: the worker wakes the callers
		l.mu.Unlock()
		return
	}
	err := errTimeout
	if b.phase.CompareAndSwap(phaseHeld, phaseWithdrawn) {
		err = errUnsent
	} else {
		b.phase.Store(phaseOverdue)
	}
	b.blame(err)
	if !l.plain {
		l.redis.report.failed(err)
	}
	for _, g := range b.groups {
		if !g.left {
			g.left = err == errTimeout
			g.end(err)
		}
	}
	l.flight.failed()
	l.late = time.Now()
	silent := time.Since(l.ended) > l.deadline/2
	l.shed(silent, errUnsent)
	l.abandon(b)
	l.mu.Unlock()
}

// end ends a group whose answer has not come in time. It requires mu.
func (g *group) end(err error) {
	g.batch = nil
	g.done <- err
}

// abandon lets another batch take the place in flight of a late batch. It
// requires mu.
func (l *lane) abandon(b *batch) {
	if !b.stuck {
		b.stuck = true
		l.land()
		l.stuck++
		l.start()
	}
}
