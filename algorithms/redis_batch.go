package algorithms

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/lua"
)

// A batch is the groups that a worker sends at once, as a script per slot.
type batch struct {
	groups []*group

	// Guarded by the lane's mu:
	overdue bool // another has its place in flight
	expired bool // its groups have been told so

	end  func(error) // tells the circuit the outcome; nil if there is none to tell
	told atomic.Bool

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
	b.count(r)
	b.send(ctx, r, now)
	b.tell(r, b.outcome()) // before the callers know: theirs is the next round trip
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

// count counts the batch by its size.
func (b *batch) count(r *Redis) {
	for i := range b.scripts {
		checks := 0
		for _, g := range b.scripts[i].groups {
			checks += len(g.items)
		}
		r.stats.batch(checks)
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

// send runs the scripts by their digest. It sends whole those that Redis does
// not know, and once more those of which nothing was executed and that another
// connection may serve: all of them in one more round trip.
func (b *batch) send(ctx context.Context, r *Redis, now string) {
	for i := range b.scripts {
		b.scripts[i].command(ctx, "evalsha", lua.Digest, now)
	}
	b.trip(ctx, r, len(b.scripts))
	again := 0
	for i := range b.scripts {
		s := &b.scripts[i]
		err := s.cmd.Err()
		if s.sent = !troubleOf(err).retry; s.sent {
			continue
		}
		again++
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			r.stats.loads.Add(1)
			r.observe(Event{Kind: EventScriptLoaded})
			s.command(ctx, "eval", scriptSource, now)
		} else {
			s.command(ctx, "evalsha", lua.Digest, now)
		}
	}
	if again > 0 {
		b.trip(ctx, r, again)
	}
	for i := range b.scripts { // no caller's context gets here
		b.scripts[i].cmd.SetErr(ownDeadline(b.scripts[i].cmd.Err()))
	}
}

// trip sends the n scripts that have not been sent.
func (b *batch) trip(ctx context.Context, r *Redis, n int) {
	r.stats.scripts.Add(uint64(n))
	var pipe redis.Pipeliner
	if client, ok := r.client.(pipeliner); ok && n > 1 {
		pipe = client.Pipeline()
	}
	for i := range b.scripts {
		switch s := &b.scripts[i]; {
		case s.sent:
		case pipe != nil:
			_ = pipe.Process(ctx, once{s.cmd}) // queues
		default:
			s.process(ctx, r.client)
		}
	}
	if pipe != nil {
		_, _ = pipe.Exec(ctx) // every command has its own error
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
