// Batches that a caller sends itself.
//
// On one machine a lone call takes 70 µs. For 20 of them its group is on the
// way to the goroutine of a worker, or its answer on the way back. So a caller
// whose group is alone in the queue sends the batch on its own goroutine.
//
// A worker may hang in the client for longer than the deadline, but a caller
// may not. So callers send batches only if
//
//   - the client gives up dialling, reading and writing at the deadline of a
//     context. go-redis does so with ContextTimeoutEnabled. Its maintenance
//     notifications must be disabled, because after one of them it reads for up
//     to 10 s. It must not ask the application for credentials, or call it for
//     a new connection.
//   - the caller has no deadline before the limiter's.
//   - no batch of the lane was late in the last second. A client that gives up
//     closes the connection. Then no reply can prove that this process was late
//     rather than Redis; see fallback_pulse.go.
//
// Example: the deadline is 50 ms, and Redis hangs. The context of the first
// call ends at 51 ms; the batch expires at 50 ms, and the caller returns at 51
// ms. For the next second only workers send, so further callers return at 50
// ms, and their connections stay open.
//
// No client of go-redis gives up when a context is cancelled. So such a call
// returns with its answer, or at the limiter's deadline.

package shared

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	// clientSlack is how long after the limiter the client gives up, so that the batch
	// expires first.
	clientSlack = time.Millisecond

	// workersFor is how long after a late batch only workers send.
	workersFor = time.Second
)

// obeysDeadlines reports whether no operation of a client lasts longer than the
// deadline of its context.
func obeysDeadlines(client Client) bool {
	c, ok := client.(interface{ Options() *redis.Options })
	if !ok {
		return false
	}
	o := c.Options()
	asks := o.CredentialsProvider != nil || o.CredentialsProviderContext != nil || o.StreamingCredentialsProvider != nil || o.OnConnect != nil
	notices := o.MaintNotificationsConfig
	return o.ContextTimeoutEnabled && !asks && notices != nil && notices.Mode == maintnotifications.ModeDisabled
}

// An ownContext is the context of a batch that a caller sends. It ends when the batch
// expires.
type ownContext struct {
	context.Context
	deadline time.Time
}

func (c ownContext) Deadline() (time.Time, bool) { return c.deadline, true }

// ownBatch returns the batch that the caller of the last group in the queue sends
// itself, with a place in flight; nil if a worker sends it. It requires mu.
func (l *lane) ownBatch(ctx context.Context) *batch {
	if !l.redis.obeys || l.plain || len(l.queue) != 1 || l.queue[0].queued.Before(l.late.Add(workersFor)) {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < l.deadline {
		return nil
	}
	if !l.place() {
		return nil
	}
	b := l.batch()
	b.gather()
	b.together = l.inFlight
	return b
}

// sendOwn sends the batch of one caller. If there is more to send afterwards, a worker
// goes on.
func (b *batch) sendOwn() {
	l, ended := b.lane, false
	defer func() {
		if !ended { // the client has panicked
			b.leavePlace(b.finish())
			b.cancel()
		}
	}()
	b.begin()
	b.timer.Reset(l.deadline)
	workers := b.ctx
	b.ctx = ownContext{workers, time.Now().Add(l.deadline + clientSlack)}
	if b.err == nil {
		b.run()
	}
	if !b.answered() && monotonic() >= b.due && b.timer.Stop() {
		b.expire() // this process was late, and the client was first
	}
	again := b.end()
	ended = true
	b.leavePlace(again)
	if again {
		b.ctx = workers
		l.redis.batches.Put(b)
	}
}

// leavePlace frees the place in flight, unless the end of the batch has done so.
func (b *batch) leavePlace(held bool) {
	if !held {
		return
	}
	l := b.lane
	l.mu.Lock()
	l.land()
	l.start()
	l.mu.Unlock()
}
