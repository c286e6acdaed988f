// The round trips of a batch: one, and a second for scripts that Redis did not
// know or that a new connection may serve.

package shared

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/lua"
)

// begin asks the circuit, if there is one, whether the batch may be sent. Plain
// commands do not count.
func (b *batch) begin(r *redisLayer) {
	if !b.plain && r.circuit != nil {
		b.endTrip, b.err = r.circuit.begin()
	}
}

// tell tells the circuit the outcome of the batch. Whatever ends the batch does
// so, once.
func (b *batch) tell(r *redisLayer, err error) {
	if b.plain {
		return
	}
	if r.reloads != nil && troubleOf(err).effect == effectFailure {
		r.reloads.ReloadState(context.Background()) // does not wait
	}
	if b.endTrip != nil {
		b.endTrip(err)
	}
}

// run sends the batch. Afterwards every command has its reply or its error.
func (b *batch) run(ctx context.Context, r *redisLayer) {
	if b.plain {
		if b.send() { // at once: late commands do no harm
			r.trip(ctx, b.groups[0].plain)
		}
		return
	}
	var now string
	if now, b.err = r.scriptNow(); b.err != nil {
		return
	}
	b.write(r)
	for i := range b.scripts {
		b.command(ctx, &b.scripts[i], "evalsha", now)
	}
	b.sendScripts(ctx, r)
	if b.again(ctx, r, now) > 0 {
		b.sendScripts(ctx, r)
	}
}

// write makes the scripts, one for the groups of each slot, and counts them.
func (b *batch) write(r *redisLayer) {
	for _, g := range b.groups {
		s := b.scriptOf(g.slot)
		s.groups = append(s.groups, g)
	}
	for i := range b.scripts {
		s, checks := &b.scripts[i], 0
		for _, g := range s.groups {
			checks += len(g.items)
		}
		r.counts.batch(checks)
		s.pack(r.clock)
	}
}

func (b *batch) scriptOf(slot uint16) *script {
	for i := range b.scripts {
		if s := &b.scripts[i]; s.groups[0].slot == slot {
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

// again makes the commands of the scripts that are to be sent once more, and
// returns how many there are: Redis executed nothing of them, and did not know
// them, or another connection may serve them.
func (b *batch) again(ctx context.Context, r *redisLayer, now string) (n int) {
	b.trips = b.trips[:0]
	if b.expired() {
		return 0
	}
	for i := range b.scripts {
		s := &b.scripts[i]
		err := s.cmd.Err()
		if !troubleOf(err).retry {
			continue
		}
		n++
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			r.report.scriptLoaded()
			b.command(ctx, s, "eval", now)
		} else {
			b.command(ctx, s, "evalsha", now)
		}
	}
	if n == len(b.scripts) {
		b.hold()
	}
	return n
}

var scriptDigest, scriptSource = []byte(lua.Digest), []byte(lua.Source())

// command makes the command that runs a script of the batch, for the next trip.
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
	b.trips = append(b.trips, once{s.cmd})
}

// A scriptName is the digest or the source of a script, as an argument of a
// command. Whoever reads it may send it.
type scriptName struct {
	batch *batch
	text  []byte
}

// MarshalBinary is called by go-redis when it writes the command. The command of a
// batch that was withdrawn is written without a name: Redis knows no such script,
// and nothing else that is written to the connection is harmed.
func (n *scriptName) MarshalBinary() ([]byte, error) {
	if n.batch.send() {
		return n.text, nil
	}
	return nil, nil
}

// String is for clients that write or trace commands as text.
func (n *scriptName) String() string {
	text, _ := n.MarshalBinary()
	return string(text)
}

// once keeps go-redis from sending a command again after a failure in which
// Redis may have executed it.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

func (b *batch) sendScripts(ctx context.Context, r *redisLayer) {
	r.counts.scripts.Add(uint64(len(b.trips)))
	r.trip(ctx, b.trips)
}

// trip sends commands, in one round trip if the client has pipelines. Afterwards
// each command has its own error.
func (r *redisLayer) trip(ctx context.Context, commands []redis.Cmder) {
	if len(commands) > 1 && r.pipelines != nil {
		pipeline := r.pipelines.Pipeline()
		for _, cmd := range commands {
			_ = pipeline.Process(ctx, cmd) // queues
		}
		_, _ = pipeline.Exec(ctx)
		return
	}
	for _, cmd := range commands {
		if err := r.client.Process(ctx, cmd); err != nil && cmd.Err() == nil {
			cmd.SetErr(err)
		}
	}
}

// do sends plain commands, all for one slot, and returns the first of their
// errors. They must do no harm if they are executed late, or more than once:
// nothing keeps the client from that.
func (r *redisLayer) do(ctx context.Context, slot uint16, commands ...redis.Cmder) error {
	return r.lane(slot).submit(ctx, &group{plain: commands, slot: slot, done: make(chan error, 1)})
}

// wake tells the circuit how the trips of the batch have ended, and then wakes
// the callers that still wait.
func (b *batch) wake(r *redisLayer) {
	if b.err != nil {
		b.refuse(r)
	} else if b.plain {
		b.groups[0].err = firstError(b.groups[0].plain)
	} else {
		b.tell(r, b.outcome())
		b.read(r)
	}
	for _, g := range b.groups {
		if !g.left {
			g.done <- g.err
		}
	}
}

// refuse ends all groups, because nothing was sent.
func (b *batch) refuse(r *redisLayer) {
	if b.endTrip != nil { // the circuit had let the batch pass
		b.tell(r, b.err)
	}
	for _, g := range b.groups {
		g.err = b.err
	}
}

// outcome returns what the scripts' errors say of Redis: one that blames Redis,
// if there is one.
func (b *batch) outcome() (err error) {
	for i := range b.scripts {
		if e := b.scripts[i].err(); err == nil || troubleOf(e).effect == effectFailure {
			err = e
		}
	}
	return err
}

// read gives every group its answer or its error.
func (b *batch) read(r *redisLayer) {
	for i := range b.scripts {
		s := &b.scripts[i]
		err := s.err()
		if err == nil {
			var reply []any
			if reply, err = s.cmd.Slice(); err == nil {
				err = s.read(reply)
			}
		}
		if err == nil {
			continue
		}
		for _, g := range s.groups {
			g.err = err
		}
		r.report.failed(err)
	}
}

// err returns the error of the script's command. No caller's context gets to
// the client, so a context's error there is the deadline's.
func (s *script) err() error { return ownDeadline(s.cmd.Err()) }

func firstError(commands []redis.Cmder) error {
	for _, cmd := range commands {
		if err := cmd.Err(); err != nil {
			return ownDeadline(err)
		}
	}
	return nil
}
