// The round trips of a batch: one, and another for scripts that Redis did not
// know, or that a new connection may serve.

package shared

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/lua"
)

// started is the instant from which monotonic instants count.
var started = time.Now()

// monotonic returns an instant in µs.
func monotonic() int64 { return time.Since(started).Microseconds() }

// run sends the batch, unless the clock is invalid or the circuit refuses it. A batch
// that has groups of the limiter itself is sent in any case. Afterwards every command
// has its reply or its error.
func (b *batch) run(s *sender) {
	r := b.lane.redis
	b.due = monotonic() + r.deadline.Microseconds()
	if b.now = 0; r.now != nil {
		if b.now, b.err = r.scriptNow(); b.err != nil {
			return
		}
	}
	var own, callers bool
	for _, g := range b.groups {
		own, callers = own || g.own, callers || !g.own
	}
	if callers {
		b.endTrip, b.err = b.lane.circuit.begin()
	}
	if b.err != nil && !own {
		return
	}
	b.err = nil
	b.timer.Reset(r.deadline)
	for b.write(); len(b.trips) > 0; b.again() {
		s.trip(b.ctx, b.trips)
	}
}

// tell reports the outcome of the batch's trips to the circuit. The function
// that ends the batch calls it, once. After a failure it lets the client look for
// the masters of a Cluster again. Go-redis does so only now and then, or when a
// node redirects it. A node that is gone does not redirect.
func (b *batch) tell(err error) {
	if c := b.lane.redis.cluster; c != nil && troubleOf(err).effect == effectFailure {
		c.ReloadState(context.Background()) // does not wait
	}
	if b.endTrip != nil {
		b.endTrip(err)
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
		r.counts.batches[min(bits.Len(uint(checks-1)), len(r.counts.batches)-1)].Add(1)
		r.counts.batched.Add(uint64(checks))
		s.pack(r.clock)
		b.command(s, "evalsha")
	}
}

// scriptOf returns the script for a group.
func (b *batch) scriptOf(g *group) *script {
	n := len(b.scripts)
	for i := range n {
		s := &b.scripts[i]
		if first := s.groups[0]; first.slot == g.slot && first.items[0].Op.Settles() == g.items[0].Op.Settles() {
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
		if err == nil || s.refused || !troubleOf(err).retry {
			continue
		}
		s.refused = true
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			b.lane.redis.report.loads.Add(1)
			name = "eval"
		}
		b.command(s, name)
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
	s.now = b.now
	s.nowText.text = strconv.AppendInt(s.nowText.text[:0], s.now, 10)
	s.args = append(s.args[:0], name, &s.name, len(s.keys))
	for i := range s.keys {
		s.args = append(s.args, &s.keys[i])
	}
	s.args = append(s.args, s.packed, s.takes)
	if s.now > 0 || len(s.checks) > 0 {
		s.args = append(s.args, &s.nowText)
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
// that has ended unsent it returns no name. Redis then knows no such script, and
// other commands on the connection are not harmed.
func (n *scriptName) MarshalBinary() ([]byte, error) {
	if n.batch.send() {
		n.sent = monotonic()
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

// read gives every group its answer or its error. It returns what the trips say
// of Redis: an error that blames Redis, if there is one. The client never
// receives a caller's context, so a context's error here is the deadline's.
func (b *batch) read() (outcome error) {
	err := b.err
	if b.phase.Load() == phaseUnsent {
		err = errUnsent
	}
	if err != nil {
		for _, g := range b.groups {
			g.err = err
		}
		return err
	}
	for i := range b.scripts {
		if err := b.readScript(&b.scripts[i]); outcome == nil || troubleOf(err).effect == effectFailure {
			outcome = err
		}
	}
	return outcome
}

// readScript gives the groups of a script their answers or errors. If Redis has
// answered none of them, it returns an error.
func (b *batch) readScript(s *script) error {
	report := b.lane.redis.report
	reply, err := s.cmd.Slice()
	if err != nil {
		err = ownDeadline(err)
	} else {
		err = s.read(reply)
	}
	if err != nil && !b.expired() { // otherwise expire has counted it
		report.failed(err)
	}
	outcome, answered := err, false
	for _, g := range s.groups {
		if err == nil && g.err != nil { // the error of a stored key
			report.failed(g.err)
		}
		g.err = cmp.Or(err, g.err)
		outcome, answered = cmp.Or(outcome, g.err), answered || g.err == nil
	}
	if answered {
		report.answered()
		b.lane.redis.routed.Store(true)
		return nil
	}
	return outcome
}
