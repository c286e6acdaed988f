// Workers: the goroutines that send the batches of a lane, and the timers that
// keep the deadline.

package shared

import (
	"context"
	"time"
)

// A worker sends batches of a lane until the queue is empty or the worker has
// lost its place in flight. Workers are pooled with what each batch needs: a
// timer, and a context that ends with it.
type worker struct {
	l      *lane
	batch  *batch // in flight, guarded by the lane's mu
	ctx    context.Context
	cancel context.CancelFunc
	timer  *time.Timer // runs expire
}

func newWorker() any {
	w := new(worker)
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.timer = time.AfterFunc(time.Hour, w.expire)
	w.timer.Stop()
	return w
}

// work sends batches.
func (l *lane) work() {
	r := l.redis
	w := r.workers.Get().(*worker)
	w.l = l
	for {
		b := w.next()
		if b == nil {
			w.l = nil
			r.workers.Put(w)
			return
		}
		b.begin(r)
		w.timer.Reset(r.deadline)
		if b.err == nil {
			b.run(w.ctx, r)
		}
		if !w.finish(b, w.timer.Stop()) {
			w.cancel()
			return
		}
	}
}

// next returns the next batch; nil if there is none, and then the worker's place
// in flight is free.
func (w *worker) next() *batch {
	l := w.l
	l.mu.Lock()
	late := l.shed()
	w.batch = l.gather()
	b := w.batch
	if b == nil {
		l.inFlight--
	}
	l.mu.Unlock()
	if late > 0 {
		l.redis.report.failed(errOverloaded)
	}
	return b
}

// finish ends a batch whose trips have ended, and wakes the callers that still
// wait. It reports whether the worker may go on: not if its place in flight was
// given to another, nor if its timer may still run.
func (w *worker) finish(b *batch, stopped bool) bool {
	l := w.l
	l.mu.Lock()
	w.batch = nil
	inTime := b.answer()
	l.release(b, stopped)
	stuck := b.stuck
	l.mu.Unlock()
	if inTime {
		b.wake(l.redis)
	}
	if stuck {
		return false
	}
	b.free()
	return stopped
}

// expire ends the batch in flight at its deadline, and the groups that have been
// waiting behind it for as long. It also ends what the client does before it
// reads a reply, such as waiting for a connection.
func (w *worker) expire() {
	defer w.cancel() // last: what it ends must find that the batch has expired
	l := w.l
	l.mu.Lock()
	b := w.batch
	if b == nil { // it is being answered this moment
		l.mu.Unlock()
		return
	}
	err := b.expire(l.redis)
	late := l.expireQueue()
	l.abandon(b)
	counts := !b.plain
	l.mu.Unlock()
	if counts {
		l.redis.report.failed(err)
	} else if late > 0 {
		l.redis.report.failed(errUnsent)
	}
}
