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
//	          caller leaves, or that has waited for too long, ends here. No group
//	          leaves later.
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
//	          receive ErrUnsent. Redis executed nothing, and never will.
//	overdue   The deadline passed after the client had read a name. The callers
//	          receive ErrTimeout. Perhaps Redis executes the scripts.
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
// When the client returns, the owners of an overdue batch learn how their groups
// went: see group.go.

package batch

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
	lane   *Lane
	ctx    context.Context // of the trips
	cancel context.CancelFunc
	timer  *time.Timer // runs expire

	phase    atomic.Uint32
	groups   []*Group
	err      error       // why nothing is sent
	endTrip  func(error) // the circuit's: the function that ends the batch gives it the outcome, once; nil if there is none
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

// reset empties b, and keeps its buffers. All its groups must have ended.
func (b *batch) reset() {
	for i := range b.scripts {
		b.scripts[i].reset()
	}
	b.phase.Store(phaseHeld)
	b.err, b.endTrip = nil, nil
	b.groups, b.scripts, b.trips = b.groups[:0], b.scripts[:0], b.trips[:0]
}

// A batch holds Redis for as long as its checks take, and all other clients
// wait. So a batch is bounded by weight, in takes that are alone on their
// keys. A heavier group travels alone.
//
// A larger batch would cost Redis little less per check, and on a network it would
// let callers wait for each other.
const maxBatchWeight = 48

// gather fills the batch with the groups at the head of the queue:
// queued -> held. It requires mu.
func (b *batch) gather(l *Lane) {
	b.lane = l
	weight := 0
	for _, g := range l.queue {
		if weight += g.Weight; len(b.groups) > 0 && weight > maxBatchWeight {
			break
		}
		b.groups = append(b.groups, g)
	}
	l.queue = slices.Delete(l.queue, 0, len(b.groups))
	b.together = l.inFlight
	l.flying += len(b.groups)
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
	if b.endTrip != nil {
		outcome := err
		if l.Circuit.Excuses(b.due, monotonic()) {
			l.transport.counts.excused.Add(1)
			outcome = trouble.ErrProcessLate
		}
		b.endTrip(outcome)
	}
	l.transport.Watcher.Failed(err)
	for _, g := range b.groups {
		g.done <- err
	}
	l.flight.failed()
	l.overdueAt = time.Now()
	silent := time.Since(l.lastEnd) > l.transport.Deadline/2
	l.shed(silent, trouble.ErrUnsent)
	l.inFlight--
	l.flying -= len(b.groups)
	l.stuck++
	l.start()
}

// finish ends a batch whose trips have ended. It wakes the callers that still
// wait, or tells the owners of overdue groups how they went. It reports
// whether the batch still has its place in flight. If it has, and several groups, its
// worker awaits callers.
func (b *batch) finish() (inTime bool) {
	stopped := b.timer.Stop()
	l := b.lane
	l.mu.Lock()
	inTime = b.answer()
	overdue := b.phase.Load() == phaseOverdue
	if inTime {
		l.lastEnd = time.Now()
		l.flying -= len(b.groups)
		if len(b.groups) > 1 {
			l.awaiting++ // callers that wake up are to find it
		}
		if !b.answered() {
			l.flight.failed()
		} else if sent := b.scripts[len(b.scripts)-1].name.sent; sent != 0 {
			now := monotonic()
			l.flight.answered(now, now-sent, b.together, l.transport.InFlight)
			l.transport.trips.add(time.Duration(now-sent) * time.Microsecond)
		}
	} else if l.stuck--; overdue && b.answered() {
		took := time.Duration(monotonic()-b.scripts[len(b.scripts)-1].name.sent) * time.Microsecond
		l.transport.Watcher.Late(took)
		l.transport.trips.add(took)
	}
	l.mu.Unlock()
	if outcome := b.read(); inTime && b.err == nil && b.endTrip != nil {
		b.endTrip(outcome)
	}
	for _, g := range b.groups {
		if inTime {
			g.done <- g.err // the group belongs to its owner again
		} else if overdue {
			g.done <- g.err
		}
	}
	if !inTime || !stopped { // something may still use the batch
		b.cancel()
		return inTime
	}
	b.reset()
	l.transport.batches.Put(b)
	return true
}
