// The round trips of a batch: one, and another for scripts that Redis did not
// know, or that a new connection may serve.

package shared

import (
	"cmp"
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/lua"
)

// begin finds out whether the batch may be sent: it reads the clock, and asks the
// circuit, if there is one. Plain commands need neither.
func (b *batch) begin() {
	r := b.lane.redis
	if b.lane.plain {
		return
	}
	if b.now, b.err = r.scriptNow(); b.err == nil && r.circuit != nil {
		b.endTrip, b.err = r.circuit.begin()
	}
	b.due = monotonic() + b.lane.deadline.Microseconds()
}

// tell reports the outcome of the batch to the circuit. The function that ends
// the batch calls it, once.
func (b *batch) tell(err error) {
	if b.lane.plain {
		return
	}
	if r := b.lane.redis; r.reloads != nil && troubleOf(err).effect == effectFailure {
		r.reloads.ReloadState(context.Background()) // does not wait
	}
	if b.endTrip != nil {
		b.endTrip(err)
	}
}

// blame reports to the circuit that the deadline has passed. If this process
// was late itself, the circuit waits for the reply.
func (b *batch) blame(err error) {
	c := b.lane.redis.circuit
	if b.endTrip == nil {
		b.tell(err)
		return
	}
	now := monotonic()
	c.pulse.missed(b.due, now)
	if c.pulse.lateness(b.began(), now) > punctual {
		b.suspect = c.suspect(b.tell, err, now)
	} else {
		b.tell(err)
	}
	c.pulse.start()
}

func (b *batch) began() int64 { return b.due - b.lane.deadline.Microseconds() }

// resolve settles the suspicion of the batch, whose trips have ended. It requires
// mu.
func (b *batch) resolve() {
	if b.suspect == nil {
		return
	}
	l, now := b.lane, monotonic()
	c, most := l.redis.circuit, l.deadline.Microseconds()
	inTime := now-b.began()-c.pulse.lateness(b.began(), now) <= most+punctual
	for i := range b.scripts {
		if b.phase.Load() != phaseWithdrawn { // otherwise Redis has not received it
			inTime = inTime && b.scripts[i].answered()
		}
	}
	c.settle(b.suspect, inTime)
}

// run sends the batch. Afterwards every command has its reply or its error.
func (b *batch) run() {
	r := b.lane.redis
	if b.lane.plain {
		if b.send() { // at once: late commands do no harm
			r.trip(b.ctx, b.groups[0].plain)
		}
		return
	}
	for b.write(); len(b.trips) > 0; b.again() {
		r.trip(b.ctx, b.trips)
	}
}

// write makes the scripts, one for the takes of each slot and one for its
// settlements, and counts them.
func (b *batch) write() {
	r := b.lane.redis
	for _, g := range b.groups {
		s := b.scriptOf(g)
		s.groups = append(s.groups, g)
	}
	for i := range b.scripts {
		s, checks := &b.scripts[i], 0
		for _, g := range s.groups {
			checks += len(g.items)
		}
		r.counts.batch(checks)
		s.pack(r.clock)
		b.command(s, "evalsha")
	}
}

// scriptOf returns the script for a group.
func (b *batch) scriptOf(g *group) *script {
	n := len(b.scripts)
	for i := range n {
		if s := &b.scripts[i]; s.groups[0].slot == g.slot && s.groups[0].settles() == g.settles() {
			return s
		}
	}
	b.scripts = slices.Grow(b.scripts, 1)[:n+1] // with the buffers of an earlier script
	return &b.scripts[n]
}

// again makes the commands of the scripts that are to be sent once more. Redis
// has executed no part of them.
func (b *batch) again() {
	clear(b.trips)
	b.trips = b.trips[:0]
	if b.expired() {
		return
	}
	for i := range b.scripts {
		s := &b.scripts[i]
		err, name := s.cmd.Err(), "evalsha"
		if s.refused || !troubleOf(err).retry {
			continue
		}
		s.refused = true
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			b.lane.redis.report.scriptLoaded()
			name = "eval"
		}
		b.command(s, name)
	}
	if len(b.trips) == len(b.scripts) {
		b.hold()
	}
}

var scriptDigest, scriptSource = []byte(lua.Digest), []byte(lua.Source())

// command makes the command that runs a script of the batch, for the next trip.
func (b *batch) command(s *script, name string) {
	b.lane.redis.counts.scripts.Add(1)
	s.name = scriptName{batch: b, text: scriptDigest}
	if name == "eval" {
		s.name.text = scriptSource
	}
	s.now.µs = b.now
	s.args = append(s.args[:0], name, &s.name, len(s.keys))
	for i := range s.keys {
		s.args = append(s.args, &s.keys[i])
	}
	s.args = append(s.args, s.packed, s.takes)
	if s.now.µs > 0 || len(s.checks) > 0 {
		s.args = append(s.args, &s.now)
	}
	if len(s.checks) > 0 {
		s.args = append(s.args, s.checks)
	}
	s.cmd = redis.NewCmd(b.ctx, s.args...)
	s.cmd.SetFirstKeyPos(3)
	b.trips = append(b.trips, once{s.cmd})
}

// A scriptName is the digest or the source of a script, as an argument of a
// command. A client that reads it may send it.
type scriptName struct {
	batch *batch
	text  []byte
	sent  int64 // µs, monotonic: when it was written; 0: unknown
}

// MarshalBinary is called by go-redis when it writes the command. For a batch
// that was withdrawn it returns no name. Redis then knows no such script, and
// other commands on the connection are not harmed.
func (n *scriptName) MarshalBinary() ([]byte, error) {
	if n.batch.send() {
		n.sent = monotonic()
		return n.text, nil
	}
	return nil, nil
}

// String is for clients that write or trace commands as text. It is unknown
// when they write.
func (n *scriptName) String() string {
	if n.batch.send() {
		return string(n.text)
	}
	return ""
}

// once keeps go-redis from sending a command again after a failure in which
// Redis may have executed it.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

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
// errors. They must do no harm if the client sends them late, or more than
// once.
func (r *redisLayer) do(ctx context.Context, commands ...redis.Cmder) error {
	return r.control.submit(ctx, &group{plain: commands, done: make(chan error, 1)})
}

// wake reports the end of the batch's trips to the circuit, and then wakes the
// callers that still wait.
func (b *batch) wake() {
	switch {
	case b.err != nil:
		for _, g := range b.groups {
			g.err = b.err
		}
	case b.lane.plain:
		g := b.groups[0]
		for _, cmd := range g.plain {
			g.err = cmp.Or(g.err, ownDeadline(cmd.Err()))
		}
	default:
		b.tell(b.read())
	}
	for _, g := range b.groups {
		if !g.left {
			g.done <- g.err
		}
	}
}

// read gives every group its answer or its error. It returns an error that
// blames Redis, if there is one. The client never receives a caller's context,
// so a context's error here is the deadline's.
func (b *batch) read() (outcome error) {
	for i := range b.scripts {
		s := &b.scripts[i]
		reply, err := s.cmd.Slice()
		if err = ownDeadline(err); err == nil {
			err = s.read(reply)
		}
		if outcome == nil || troubleOf(err).effect == effectFailure {
			outcome = err
		}
		for _, g := range s.groups {
			if g.err = cmp.Or(err, g.err); err == nil && g.err != nil { // the error of a stored key
				b.lane.redis.report.failed(g.err)
			}
		}
		if err != nil {
			b.lane.redis.report.failed(err)
		}
	}
	return outcome
}
