package algorithms

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/lua"
)

// A batch is the groups that a worker sends at once, as a script per slot.
type batch struct {
	groups []*group

	// Guarded by the lane's mu:
	overdue bool // another has its place in flight
	expired bool // its groups have been told so

	scripts []script
}

var batches = sync.Pool{New: func() any { return new(batch) }}

func newBatch() *batch { return batches.Get().(*batch) }

// free gives b back, once all its groups are answered.
func (b *batch) free() {
	clear(b.groups)
	for i := range b.scripts {
		b.scripts[i].reset()
	}
	*b = batch{groups: b.groups[:0], scripts: b.scripts[:0]}
	batches.Put(b)
}

// run sends the batch, and reads every group's answer.
func (b *batch) run(ctx context.Context, r *Redis) {
	b.write()
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

// write makes the scripts. Groups whose keys may be used by one script are.
func (b *batch) write() {
	for _, g := range b.groups {
		s := b.scriptFor(g)
		s.groups = append(s.groups, g)
	}
	for i := range b.scripts {
		b.scripts[i].pack()
	}
}

func (b *batch) scriptFor(g *group) *script {
	for i := range b.scripts {
		if s := &b.scripts[i]; s.groups[0].joins(g) {
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
		g.err = err
	}
}

// answer wakes the callers. From then on the groups are theirs.
func (b *batch) answer() {
	for _, g := range b.groups {
		g.done <- g.err
	}
}

// joins reports whether one script may decide both groups.
func (g *group) joins(other *group) bool {
	return g.split == other.split && g.slot == other.slot && (g.split != byTag || g.tag == other.tag)
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
			b.scripts[i].process(ctx, r.client)
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
		s.process(ctx, r.client)
	}
	for i := range b.scripts { // no caller's context gets here
		b.scripts[i].cmd.SetErr(ownDeadline(b.scripts[i].cmd.Err()))
	}
}

// process sends the command, which then has the error, too.
func (s *script) process(ctx context.Context, c Client) {
	if err := c.Process(ctx, once{s.cmd}); err != nil && s.cmd.Err() == nil {
		s.cmd.SetErr(err)
	}
}

var scriptSource = lua.Source()

// once keeps go-redis from sending a command again after a failure in which it
// may have been executed.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }
