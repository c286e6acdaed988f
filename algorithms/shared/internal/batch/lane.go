// The queues of batches, called lanes: in each, groups gather for one master until a
// batch takes them. And the senders of these batches.
//
// While as many batches as allowed are in flight, groups gather, and the next
// batch takes them all. So a lone call waits for nothing, and many calls share
// round trips. Example: two batches are allowed and in flight, and 30 calls
// arrive. They queue. When the first batch is answered, its worker sends all 30
// in the next one.
//
// Many callers call again as soon as they have an answer. So a worker that has woken
// several callers lets them run until as many calls are queued. It stops sooner if 16
// yields bring no call, which takes 2 µs, and after 1 ms in any case.
// Meanwhile no call starts a batch. Example: Redis is 0.5 ms away, and 8 callers call
// again and again. Their calls travel as one batch, not as five of one or two calls,
// which would cost Redis twice as much. In a busy program a worker may wait long
// for a processor. So 1 ms after an answer calls start batches again. They must not do
// so sooner: on a busy machine the whole program loses its processors for some
// hundred µs, and then the first call would travel alone, ahead of all others.
// Measured with eight processes on two cores: with 0.1 ms a check costs Redis 7.9 µs,
// with 0.4 ms 5.4 µs, and with 1 ms 5.2 µs.
//
// Senders. A worker is a goroutine that sends batches until the queue is empty.
// It may hang in the client for longer than the deadline, but a caller may not.
// A caller whose group is alone in the queue sends the batch itself, because
// two hand-overs to a worker take a sixth of a round trip on one machine. It
// does so only through a client that ends each read and write 1 ms after the
// deadline, and only if
//
//   - no take fails closed: a reply that comes after its refusal lets its units be
//     returned, and
//   - no batch of the lane was late in the last second. A client that gives up
//     closes the connection.
//
// Example: the deadline is 50 ms, and Redis hangs. The batch of the first call
// expires at 50 ms, and its caller returns at 51 ms. For the next second only
// workers send, so further callers return at 50 ms, and their connections stay
// open for ten deadlines. If Redis resumes by then, its replies say which calls
// it has executed.

package batch

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

const (
	// maxStuck is how many batches of a lane may be stuck before it refuses calls.
	// Then the batches in flight may still get stuck, too.
	maxStuck = 16
	// maxQueued bounds the groups of a lane that wait to be sent.
	maxQueued = 16 << 10

	// joinFor is how long after an answer calls wait for a worker that is about to
	// take them. The worker stops waiting after so many yields without another call.
	joinFor = time.Millisecond
	yields  = 16

	// workersFor is how long after a late batch only workers send.
	workersFor = time.Second
)

// A Lane sends groups to one master.
type Lane struct {
	transport *Transport
	Circuit   Circuit

	mu        sync.Mutex // guards the fields below
	queue     []*Group
	inFlight  int       // batches in flight, except stuck ones
	flying    int       // groups in these batches
	flight    flight    // how many may be in flight
	awaiting  int       // workers in await
	stuck     int       // batches that callers gave up and the client has not
	lastEnd   time.Time // when the last batch ended that was not stuck
	overdueAt time.Time // when the last batch was overdue
}

// Lane returns the lane of a master, which asks its circuit.
func (t *Transport) Lane(c Circuit) *Lane { return &Lane{transport: t, Circuit: c} }

// Submit queues a group and waits for its end. If ctx ends while the group is
// queued, the group is not sent. An overdue group may still be executed: see group.go.
func (l *Lane) Submit(ctx context.Context, g *Group) error {
	if g.done == nil {
		g.done = make(chan error, 2)
	}
	direct, err := l.enqueue(g)
	if err != nil {
		return err
	}
	if direct != nil {
		direct.sendDirect()
	}
	select {
	case err = <-g.done:
	case <-ctx.Done():
		if l.leave(g) {
			return trouble.ErrUnsent
		}
		err = <-g.done
	}
	return err
}

// enqueue adds a group to the queue. It returns the group's batch if its caller
// is to send it; otherwise a worker will.
func (l *Lane) enqueue(g *Group) (direct *batch, err error) {
	g.queued = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stuck >= maxStuck || len(l.queue) >= maxQueued {
		return nil, trouble.ErrOverloaded
	}
	l.queue = append(l.queue, g)
	if l.awaiting > 0 && g.queued.Sub(l.lastEnd) < joinFor {
		return nil, nil
	}
	if l.mayGoDirect() && l.place(true) {
		direct = l.transport.batches.Get().(*batch)
		direct.gather(l)
		return direct, nil
	}
	l.start()
	return nil, nil
}

// leave takes a group out of the queue, and reports whether it was there. It will
// never be sent then.
func (l *Lane) leave(g *Group) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.queue, g)
	if i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	}
	return i >= 0
}

// shed ends the groups at the head of the queue that have been waiting for the
// whole deadline, or all groups. It reports whether there are any. It requires
// mu.
func (l *Lane) shed(all bool, err error) bool {
	oldest := time.Now().Add(-l.transport.Deadline)
	n := 0
	for n < len(l.queue) && (all || l.queue[n].queued.Before(oldest)) {
		l.queue[n].done <- err
		n++
	}
	l.queue = slices.Delete(l.queue, 0, n)
	return n > 0
}

// mayGoDirect reports whether the caller of the last group in the queue may send it
// itself. It requires mu.
func (l *Lane) mayGoDirect() bool {
	g := l.queue[len(l.queue)-1]
	return l.transport.direct != nil && len(l.queue) == 1 && !g.Closed && !g.queued.Before(l.overdueAt.Add(workersFor))
}

// start starts a worker, if there is work and one more batch may be in flight.
// It requires mu.
func (l *Lane) start() {
	if len(l.queue) > 0 && l.place(false) {
		go l.work()
	}
}

// place takes a place in flight, and reports whether there was one. A caller that sends
// its own batch may find one where a worker does not. It requires mu.
func (l *Lane) place(direct bool) bool {
	now, most := monotonic(), l.transport.InFlight
	if l.inFlight >= l.flight.allowed(now, most) && !(direct && l.flight.alone(now, l.flying, most)) {
		return false
	}
	l.inFlight++
	return true
}

// work is a worker: it sends batches until the queue is empty, or until it has
// lost its place in flight.
func (l *Lane) work() {
	for b := l.next(); b != nil; b = l.next() {
		b.run(l.transport.workers)
		woken := len(b.groups)
		if !b.finish() {
			return
		}
		if woken > 1 {
			l.await(woken)
		}
	}
}

// await lets callers run that a batch has woken, until as many calls are queued.
func (l *Lane) await(woken int) {
	for began, before, idle := time.Now(), 0, 0; ; idle++ {
		l.mu.Lock()
		queued := len(l.queue)
		if queued != before {
			before, idle = queued, 0
		}
		ends := queued >= woken || idle == yields || time.Since(began) >= joinFor
		if ends {
			l.awaiting--
		}
		l.mu.Unlock()
		if ends {
			return
		}
		runtime.Gosched()
	}
}

// next returns the next batch of a worker. If there is nothing to send, next
// frees the worker's place in flight and returns nil. If the batch has no room for all
// groups, next starts another worker. It sheds groups that have waited for too
// long: there may be more calls than Redis answers in time.
func (l *Lane) next() (b *batch) {
	l.mu.Lock()
	overloaded := l.shed(false, trouble.ErrOverloaded)
	l.inFlight-- // the worker's place: fewer may be allowed now
	if len(l.queue) > 0 && l.place(false) {
		b = l.transport.batches.Get().(*batch)
		b.gather(l)
		l.start()
	}
	l.mu.Unlock()
	if overloaded {
		l.transport.Watcher.Failed(trouble.ErrOverloaded)
	}
	return b
}

// sendDirect sends the batch of one caller. If there is more to send afterwards, a
// worker goes on.
func (b *batch) sendDirect() {
	l := b.lane
	defer func() { // also if the client panics
		if b.finish() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.inFlight--
			l.start()
		}
	}()
	b.run(l.transport.direct)
	if !b.answered() && monotonic() >= b.due {
		b.expire() // this process was late, and the client was first
	}
}

// Load returns what the lane is doing, for tests of this module: the groups that wait, the batches that the client has,
// also stuck ones, and the batches that may be in flight while round trips are known; 0 before the first.
func (l *Lane) Load() (queued, underWay, allowed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue), l.inFlight + l.stuck, l.flight.level
}
