// Batches that a caller sends itself.
//
// On one machine a lone call takes 70 µs, and 20 of them pass while its group goes to
// the goroutine of a worker and its answer comes back. So a caller whose group is
// alone in the queue sends the batch on its own goroutine.
//
// A worker can hang in the client for longer than the deadline, and no caller may. So
// callers send batches only if
//
//   - the client gives up reading and writing at the deadline of a context. go-redis
//     does so with ContextTimeoutEnabled. Its maintenance notifications must be
//     disabled, because after one of them it reads for up to 10 s.
//   - the caller has no deadline that comes before the limiter's.
//   - no batch of the lane was late in the last second. A client that gives up closes
//     the connection. Then no reply can prove that this process was late, and not
//     Redis; see fallback_pulse.go.
//
// No client of go-redis gives up when a context is cancelled. So such a call returns
// with its answer, or at the limiter's deadline.

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

// obeysDeadlines reports whether a client reads and writes no longer than until the
// deadline of a context.
func obeysDeadlines(client Client) bool {
	c, ok := client.(interface{ Options() *redis.Options })
	if !ok {
		return false
	}
	o := c.Options()
	notices := o.MaintNotificationsConfig
	return o.ContextTimeoutEnabled && notices != nil && notices.Mode == maintnotifications.ModeDisabled
}

// A tripContext is the context of a batch. It is cancelled when the batch expires.
type tripContext struct {
	context.Context
	deadline time.Time // zero for workers
}

func (c *tripContext) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }

// sendsOwn reports whether a caller whose group is the last of the queue sends its
// batch itself. Then it has taken a place in flight. It requires mu.
func (l *lane) sendsOwn(ctx context.Context) bool {
	if !l.redis.obeys || l.plain || len(l.queue) != 1 || l.queue[0].queued.Before(l.late.Add(workersFor)) {
		return false
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < l.deadline {
		return false
	}
	return l.place()
}

// sendOwn sends one batch. A worker goes on if there is more to send.
func (l *lane) sendOwn() {
	b := l.batch()
	if b.next() {
		b.ctx.deadline = time.Now().Add(l.deadline + clientSlack)
		if !b.travel() {
			return
		}
		b.ctx.deadline = time.Time{}
		l.mu.Lock()
		l.land()
		l.start()
		l.mu.Unlock()
	}
	l.redis.batches.Put(b)
}
