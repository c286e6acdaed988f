// Lanes: the queues in which groups gather, one for each part of Redis, and the
// workers that send the gathered groups.
//
// While as many batches as allowed are in flight, groups gather, and the next
// batch takes them all. So a lone call waits for nothing, and many calls share
// round trips. Example: two batches are allowed and in flight, and 30 calls
// arrive. They queue. When the first batch is answered, its worker sends all 30
// in the next one.

package shared

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// errOverloaded is wrapped by the error of a call that was not sent: too many
// calls wait before it, too many batches may be stuck, or it has waited behind
// others for the whole deadline.
var errOverloaded = errors.New("overloaded")

var (
	errTimeout = fmt.Errorf("no answer within the limiter's deadline: %w", context.DeadlineExceeded)
	// errUnsent is the error of a call that waited behind others, or for a
	// connection: nothing was executed.
	errUnsent = fmt.Errorf("not sent within the limiter's deadline: %w", context.DeadlineExceeded)
)

const (
	// A batch holds Redis for as long as its checks take, and all other clients
	// wait. So a batch is bounded by weight, in takes that are alone on their
	// keys, and by the bytes of its keys and arguments. A group that exceeds them
	// travels alone.
	maxBatchWeight = 64
	maxBatchBytes  = 16 << 10

	// maxStuck bounds the batches of a lane that callers have given up while
	// the client still waits for the reply, for its ReadTimeout.
	maxStuck = 16
	// maxQueued bounds the groups of a lane that wait to be sent.
	maxQueued = 16 << 10

	// slotsPerLane makes 64 lanes. Masters hold ranges of slots, so a master
	// that does not answer delays few slots of other masters.
	slotsPerLane = 256

	// controlDeadline is the deadline of plain commands. No caller of a limit
	// waits for them, and the first command may have to dial.
	controlDeadline = time.Second
)

// A lane sends groups to one part of Redis. Plain commands have a lane of their
// own, so that a command that hangs delays no script.
type lane struct {
	redis    *redisLayer
	deadline time.Duration
	plain    bool

	mu       sync.Mutex // guards the fields below
	queue    []*group
	inFlight int       // batches in flight, except stuck ones
	flight   flight    // how many may be in flight
	stuck    int       // batches that callers gave up and the client has not
	ended    time.Time // when the last batch ended that was not stuck
	late     time.Time // when the last batch was late
}

// lane returns the lane of a slot.
func (r *redisLayer) lane(slot uint16) *lane {
	return &r.lanes[int(slot)/slotsPerLane]
}

// submit queues a group, and waits for its end, or until ctx ends.
func (l *lane) submit(ctx context.Context, g *group) error {
	g.queued = time.Now()
	l.mu.Lock()
	if l.stuck >= maxStuck || len(l.queue) >= maxQueued {
		l.mu.Unlock()
		return errOverloaded
	}
	l.queue = append(l.queue, g)
	if own := l.ownBatch(ctx); own != nil {
		l.mu.Unlock()
		own.sendOwn()
		return <-g.done
	}
	l.start()
	l.mu.Unlock()
	select {
	case err := <-g.done:
		return err
	case <-ctx.Done():
	}
	if l.leave(ctx, g) {
		if err := ctx.Err(); g.left || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return errUnsent // the group was still in the queue
	}
	return <-g.done // just in time
}

// start starts a worker, if there is work and one more batch may be in flight.
// It requires mu.
func (l *lane) start() {
	if len(l.queue) > 0 && l.place() {
		go l.work()
	}
}

// place takes a place in flight, and reports whether there was one. It requires mu.
func (l *lane) place() bool {
	if l.inFlight >= l.allowed() {
		return false
	}
	if l.inFlight >= fewInFlight && l.redis.extra.Add(1) > int64(l.redis.inFlight) {
		l.redis.extra.Add(-1)
		return false
	}
	l.inFlight++
	return true
}

// allowed returns how many batches may be in flight. It requires mu.
func (l *lane) allowed() int {
	if l.plain {
		return min(fewInFlight, l.redis.inFlight)
	}
	return l.flight.allowed(monotonic(), l.redis.inFlight)
}

// land frees a place in flight. It requires mu.
func (l *lane) land() {
	if l.inFlight > fewInFlight {
		l.redis.extra.Add(-1)
	}
	l.inFlight--
}

// batch returns a batch that is not used.
func (l *lane) batch() *batch {
	b := l.redis.batches.Get().(*batch)
	b.lane = l
	return b
}

// work is a worker: it sends batches until the queue is empty, or until it has
// lost its place in flight.
func (l *lane) work() {
	b := l.batch()
	for b.next() {
		b.begin()
		b.timer.Reset(l.deadline)
		if b.err == nil {
			b.run()
		}
		if !b.end() {
			return
		}
	}
	l.redis.batches.Put(b)
}

// end ends a batch whose trips have ended. It reports whether the batch can be
// used again.
func (b *batch) end() bool {
	if !b.finish() {
		b.cancel()
		return false
	}
	b.reset()
	return true
}

// next fills the batch, and reports whether there is anything to send. If there
// is nothing, it frees the worker's place in flight. It sheds groups that have
// waited for too long: there may be more calls than Redis answers in time.
func (b *batch) next() bool {
	l := b.lane
	l.mu.Lock()
	late := l.shed(false, errOverloaded)
	found := l.inFlight <= l.allowed() && b.gather()
	b.together = l.inFlight
	if !found {
		l.land()
	}
	l.mu.Unlock()
	if late && !l.plain {
		l.redis.report.failed(errOverloaded)
	}
	return found
}

// finish ends a batch whose trips have ended, and wakes the callers that still
// wait. It reports whether the worker may use the batch again. It may not if
// another batch has its place in flight, or if its timer may still run.
func (b *batch) finish() bool {
	stopped := b.timer.Stop()
	l := b.lane
	l.mu.Lock()
	b.resolve()
	inTime, stuck := b.answer(), b.stuck
	if stuck {
		l.stuck--
	} else {
		l.ended = time.Now()
		if inTime {
			b.landed()
		}
		if !stopped {
			l.land()
			l.start()
		}
	}
	l.mu.Unlock()
	b.tellLate()
	if inTime {
		b.wake() // last: groups belong to their callers again
	}
	return stopped && !stuck
}
