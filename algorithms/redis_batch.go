package algorithms

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/lua"
)

// A batch is the groups that a worker sends at once, as a script per slot.
type batch struct {
	groups  []*group
	overdue bool // guarded by the lane's mu

	scripts []script
}

var batches = sync.Pool{New: func() any { return new(batch) }}

func newBatch() *batch { return batches.Get().(*batch) }

// free gives b back. Nobody may hold it any more: a group that was given up
// leaves its batch to the garbage collector.
func (b *batch) free() {
	for _, g := range b.groups {
		g.batch = nil
	}
	clear(b.groups)
	b.groups = b.groups[:0]
	for i := range b.scripts {
		b.scripts[i].reset()
	}
	b.scripts = b.scripts[:0]
	batches.Put(b)
}

// run sends the batch, and gives every group its answer.
func (b *batch) run(r *Redis) {
	ctx, cancel := b.context()
	defer cancel()
	b.write(placement(r.placement.Load()))
	now, err := r.scriptNow()
	if err != nil {
		b.fail(err)
		return
	}
	b.send(ctx, r, now)
	for i := range b.scripts {
		s := &b.scripts[i]
		reply, err := s.cmd.Slice()
		if err == nil {
			err = s.read(reply)
		}
		if err != nil {
			r.stats.errors.Add(1)
			r.observe(Event{Kind: EventError, Err: err})
			s.fail(err)
		}
	}
}

// context ends when the last caller has given up. That is the bound on a
// client which waits for a connection; go-redis does not obey it in a read.
func (b *batch) context() (context.Context, context.CancelFunc) {
	var latest time.Time
	for _, g := range b.groups {
		if g.deadline.IsZero() {
			return context.Background(), func() {}
		}
		if g.deadline.After(latest) {
			latest = g.deadline
		}
	}
	return context.WithDeadline(context.Background(), latest)
}

// write makes the scripts. Groups whose keys may be used by one script are.
func (b *batch) write(p placement) {
	for _, g := range b.groups {
		b.scriptFor(g, p).add(g)
	}
}

func (b *batch) scriptFor(g *group, p placement) *script {
	for i := range b.scripts {
		s := &b.scripts[i]
		if p == together || s.groups[0].slot == g.slot && (p == bySlot || s.groups[0].tag == g.tag) {
			return s
		}
	}
	if len(b.scripts) < cap(b.scripts) {
		b.scripts = b.scripts[:len(b.scripts)+1] // with its buffers
	} else {
		b.scripts = append(b.scripts, script{})
	}
	return &b.scripts[len(b.scripts)-1]
}

// fail ends all groups with one error.
func (b *batch) fail(err error) {
	for _, g := range b.groups {
		g.finish(err)
	}
}

func (g *group) finish(err error) {
	g.err = err
	g.done <- struct{}{}
}

// A pipeliner is a client that can send several commands at once.
type pipeliner interface{ Pipeline() redis.Pipeliner }

// send runs the scripts by their digest, and sends whole those that Redis does
// not know.
func (b *batch) send(ctx context.Context, r *Redis, now string) {
	for i := range b.scripts {
		b.scripts[i].command(ctx, "evalsha", lua.Digest, now)
	}
	r.stats.scripts.Add(uint64(len(b.scripts)))
	if client, ok := r.client.(pipeliner); ok && len(b.scripts) > 1 {
		pipe := client.Pipeline()
		for i := range b.scripts {
			_ = pipe.Process(ctx, once{b.scripts[i].cmd}) // queues
		}
		_, _ = pipe.Exec(ctx) // every command has its own error
	} else {
		for i := range b.scripts {
			_ = r.client.Process(ctx, once{b.scripts[i].cmd}) // the command has it
		}
	}
	for i := range b.scripts {
		s := &b.scripts[i]
		if !redis.HasErrorPrefix(s.cmd.Err(), "NOSCRIPT") {
			continue
		}
		r.stats.loads.Add(1)
		r.stats.scripts.Add(1)
		r.observe(Event{Kind: EventScriptLoaded})
		s.command(ctx, "eval", scriptSource, now)
		_ = r.client.Process(ctx, once{s.cmd})
	}
}

var scriptSource = lua.Source()

// once keeps go-redis from sending a command again after a failure in which it
// may have been executed.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }
