package algorithms

import (
	"context"
	"slices"
	"time"
)

// A worker sends batches of a lane, until the queue is empty or it is overdue.
// Workers are pooled with what each batch needs: a timer, and a context that
// ends with it.
type worker struct {
	l      *lane
	batch  *batch // under way, guarded by the lane's mu
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
	w := l.r.workers.Get().(*worker)
	w.l = l
	for {
		b := w.next()
		if b == nil {
			w.l = nil
			l.r.workers.Put(w)
			return
		}
		err := b.begin(l.r)
		w.timer.Reset(l.r.timeout)
		if err != nil {
			b.fail(err)
		} else {
			b.run(w.ctx, l.r)
		}
		if !w.finish(b, w.timer.Stop()) {
			w.cancel()
			return
		}
	}
}

// expire ends the calls of a batch that has not been answered in time, and
// those that have been waiting behind it for as long. If nothing else has been
// answered of late, all that wait end: they would wait once more as long. It
// also ends what the client does before it reads a reply, such as waiting for a
// connection: a batch that has none by now is withdrawn.
func (w *worker) expire() {
	defer w.cancel() // last: what it ends is to find that it is overdue
	if err := w.expireBatch(); err != nil {
		w.l.r.failed(err)
	}
}

// expireBatch returns what the batch has failed with, nil if it had been answered.
func (w *worker) expireBatch() error {
	l := w.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.batch == nil {
		return nil
	}
	err := errTimeout
	if w.batch.withdraw() {
		err = errUnsent
	}
	told := w.batch.tell(l.r, err)
	for _, g := range w.batch.groups {
		g.expire(err)
	}
	w.batch.expired = true
	oldest := time.Now().Add(-l.r.timeout)
	silent := time.Since(l.ended) > l.r.timeout/2
	l.queue = slices.DeleteFunc(l.queue, func(g *group) bool {
		late := silent || g.queued.Before(oldest)
		if late {
			g.expire(errUnsent)
		}
		return late
	})
	l.pass(w.batch)
	if !told { // it is being answered this moment
		return nil
	}
	return err
}

// expire ends a call whose answer has not come in time. It requires mu.
func (g *group) expire(err error) {
	g.batch = nil
	g.done <- err
}

// next takes the next batch off the queue; nil, and the worker's place in
// flight is free, if there is none.
func (w *worker) next() *batch {
	l, late := w.l, 0
	defer func() { // without the lock
		if late > 0 {
			l.r.failed(ErrOverloaded)
		}
	}()
	l.mu.Lock()
	defer l.mu.Unlock()
	late = l.shed()
	if len(l.queue) == 0 {
		l.inFlight--
		return nil
	}
	b := newBatch()
	var weight, size int
	for _, g := range l.queue {
		weight, size = weight+g.weight, size+g.size
		if len(b.groups) > 0 && (weight > maxBatchWeight || size > maxBatchBytes) {
			break
		}
		g.batch = b
		b.groups = append(b.groups, g)
	}
	rest := copy(l.queue, l.queue[len(b.groups):])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	w.batch = b
	return b
}

// shed ends the calls at the head of the queue that have been waiting for the
// whole timeout, though batches are answered: there are more calls than Redis
// answers in time. It returns how many, and requires mu.
func (l *lane) shed() (late int) {
	oldest := time.Now().Add(-l.r.timeout)
	for late < len(l.queue) && l.queue[late].queued.Before(oldest) {
		l.queue[late].expire(ErrOverloaded)
		late++
	}
	l.queue = slices.Delete(l.queue, 0, late)
	return late
}

// finish answers the calls of a batch, unless they have ended. It reports
// whether the worker may go on: not if its place in flight was given to
// another, nor if its timer may still run.
func (w *worker) finish(b *batch, stopped bool) bool {
	if w.take(b, stopped) {
		b.answer()
	}
	if b.overdue {
		return false
	}
	b.free()
	return stopped
}

// take ends the time in flight of a batch, and reports whether its calls still
// wait.
func (w *worker) take(b *batch, stopped bool) bool {
	l := w.l
	l.mu.Lock()
	defer l.mu.Unlock()
	w.batch = nil
	switch {
	case b.overdue:
		l.stuck--
	case !stopped:
		l.ended = time.Now()
		l.inFlight--
		l.start()
	default:
		l.ended = time.Now()
	}
	if b.expired {
		return false
	}
	for _, g := range b.groups {
		g.batch = nil
	}
	return true
}
