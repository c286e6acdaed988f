package algorithms

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

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

	state atomic.Uint32 // held, taken or withdrawn

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
	clock, err := r.scriptNow()
	if err != nil {
		b.fail(err)
		return
	}
	b.write(r.processClock())
	b.count(r)
	b.send(ctx, r, clock)
	inTime := b.tell(r, b.outcome()) // before the callers know: theirs is the next round trip
	for i := range b.scripts {
		s := &b.scripts[i]
		reply, err := s.cmd.Slice()
		if err == nil {
			err = s.read(reply)
		}
		if err != nil {
			s.fail(err)
			if inTime { // or the timeout was the error
				r.failed(err)
			}
		}
	}
}

// failed counts and tells that a script failed.
func (r *Redis) failed(err error) {
	r.stats.errors.Add(1)
	r.observe(Event{Kind: EventError, Err: err})
}

// write makes the scripts. Groups whose keys may be used by one script are.
func (b *batch) write(clock func() time.Time) {
	for _, g := range b.groups {
		s := b.scriptFor(g)
		s.groups = append(s.groups, g)
	}
	for i := range b.scripts {
		b.scripts[i].pack(clock)
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
		b.command(ctx, &b.scripts[i], "evalsha", now)
	}
	b.trip(ctx, r, len(b.scripts))
	if again := b.again(ctx, r, now); again > 0 {
		b.trip(ctx, r, again)
	}
	gone := b.state.Load() == withdrawn
	for i := range b.scripts { // no caller's context gets here
		if cmd := b.scripts[i].cmd; gone {
			cmd.SetErr(unsent(cmd.Err()))
		} else {
			cmd.SetErr(ownDeadline(cmd.Err()))
		}
	}
}

// again makes the commands of the scripts that are to be sent once more, and
// returns how many there are.
func (b *batch) again(ctx context.Context, r *Redis, now string) (n int) {
	gone := b.state.Load() == withdrawn
	for i := range b.scripts {
		s := &b.scripts[i]
		err := s.cmd.Err()
		if s.sent = gone || !troubleOf(err).retry; s.sent {
			continue
		}
		n++
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			r.stats.loads.Add(1)
			r.observe(Event{Kind: EventScriptLoaded})
			b.command(ctx, s, "eval", now)
		} else {
			b.command(ctx, s, "evalsha", now)
		}
	}
	if n == len(b.scripts) {
		b.resume()
	}
	return n
}

var scriptDigest, scriptSource = []byte(lua.Digest), []byte(lua.Source())

// command makes the command that runs a script of the batch.
func (b *batch) command(ctx context.Context, s *script, name, now string) {
	s.name = scriptName{b, scriptDigest}
	if name == "eval" {
		s.name.text = scriptSource
	}
	s.args = append(s.args[:0], name, &s.name, len(s.keys))
	for i := range s.keys {
		s.args = append(s.args, &s.keys[i]) // a pointer goes into an any without allocation
	}
	s.args = append(s.args, now, s.packed, s.takes, s.checks)
	s.cmd = redis.NewCmd(ctx, s.args...)
	s.cmd.SetFirstKeyPos(3)
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

// once keeps go-redis from sending a command again after a failure in which it
// may have been executed.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }
