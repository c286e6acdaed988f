package algorithms

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrOverloaded is wrapped by the error of a call that was not even sent,
// because too many calls before it wait, or were given up and may be stuck, or
// because it has waited behind them for the whole Timeout.
var ErrOverloaded = errors.New("overloaded")

var (
	errTimeout = fmt.Errorf("no answer within the limiter's timeout: %w", context.DeadlineExceeded)
	// errUnsent is that of a call that waited behind others, or for a connection:
	// nothing was executed.
	errUnsent = fmt.Errorf("not sent within the limiter's timeout: %w", context.DeadlineExceeded)
)

const (
	// A batch holds Redis for as long as its checks take, and all other clients
	// wait: it is bounded by weight, in takes from one bucket, and by
	// the bytes of its keys and arguments. What exceeds them travels alone.
	maxBatchWeight = 48
	maxBatchBytes  = 16 << 10

	defaultInFlight = 2
	// maxStuck bounds the batches of a lane that callers have given up and
	// that the client still waits for: go-redis does, for its ReadTimeout.
	maxStuck = 16
	// maxQueued bounds the calls of a lane that wait to be sent.
	maxQueued = 16 << 10

	// slotsPerLane makes 64 lanes. Masters hold ranges of slots, so a master
	// that does not answer holds up few lanes of others.
	slotsPerLane = 256
)

// weight is what an item costs Redis, in takes from a bucket, which are the
// cheapest, 3 to 4 µs. A log takes several commands; in the worst case half its
// entries are read, and for a settlement as many as its units. Of concurrent
// requests every unit may be a command; what has ended goes by one.
func (it *redisItem) weight() int {
	switch {
	case it.algo == algorithmConcurrent:
		return 8 + int(min(it.cost, it.terms.cap)/2)
	case it.algo == algorithmSlidingWindowLog:
		return 8 + int(it.terms.requests/25+min(it.cost, it.terms.requests)/5)
	case it.op == Take && it.bucket():
		return 1
	default:
		return 3
	}
}

// A lane sends groups to one part of Redis. While as many batches as allowed
// are in flight, groups gather; the next batch takes them all. So a lone caller
// waits for nobody, and many share round trips.
type lane struct {
	r *Redis

	mu       sync.Mutex // guards what follows
	queue    []*group
	inFlight int       // batches, without those that are stuck
	stuck    int       // batches that a caller has given up at its deadline
	ended    time.Time // when the last batch did that was not given up
}

// laneOf returns the lane of a group.
func (r *Redis) laneOf(g *group) *lane {
	return &r.lanes[int(g.slot)/slotsPerLane]
}

// submit queues a group, and waits for its answer, or until ctx ends.
func (l *lane) submit(ctx context.Context, g *group) error {
	g.queued = time.Now()
	l.mu.Lock()
	if l.stuck >= maxStuck || len(l.queue) >= maxQueued {
		l.mu.Unlock()
		return ErrOverloaded
	}
	l.queue = append(l.queue, g)
	l.start()
	l.mu.Unlock()
	select {
	case err := <-g.done:
		return err
	case <-ctx.Done():
		return l.leave(ctx, g)
	}
}

// start starts a worker, if there is work and one more may be in flight. The
// worker ends when the queue is empty. It requires mu.
func (l *lane) start() {
	if len(l.queue) > 0 && l.inFlight < l.r.inFlight {
		l.inFlight++
		go l.work()
	}
}

// leave gives up a group's place. What has not been sent never will be. What
// has been is sent: its answer goes nowhere, and, since at a deadline its batch
// is overdue, another may take its place in flight.
func (l *lane) leave(ctx context.Context, g *group) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, g); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		return ctx.Err()
	}
	if g.batch == nil { // just in time
		return <-g.done
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		l.pass(g.batch)
	}
	return ctx.Err()
}

// pass lets another batch take the place in flight of one that is overdue. It
// requires mu.
func (l *lane) pass(b *batch) {
	if !b.overdue {
		b.overdue = true
		l.inFlight--
		l.stuck++
		l.start()
	}
}
