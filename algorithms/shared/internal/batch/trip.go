// The round trips of a batch: one, and another for scripts that Redis did not
// know, or that a new connection may serve.

package batch

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

// started is the instant from which monotonic instants count.
var started = time.Now()

// monotonic returns an instant in µs.
func monotonic() int64 { return time.Since(started).Microseconds() }

// run sends the batch, unless the clock is invalid or the circuit refuses it. A batch
// that has groups of the limiter itself is sent in any case. Afterwards every command
// has its reply or its error.
func (b *batch) run(s *sender) {
	t := b.lane.transport
	b.due = monotonic() + t.Deadline.Microseconds()
	if b.now, b.err = t.scriptNow(); b.err != nil {
		return
	}
	ours := slices.ContainsFunc(b.groups, func(g *Group) bool { return g.Ours })
	callers := slices.ContainsFunc(b.groups, func(g *Group) bool { return !g.Ours })
	if callers {
		b.endTrip, b.err = b.lane.Circuit.Begin()
	}
	if b.err != nil && !ours {
		return
	}
	b.err = nil
	b.timer.Reset(t.Deadline)
	b.opaque = s.opaque
	for b.write(); len(b.trips) > 0; b.again() {
		s.trip(b.ctx, b.trips)
	}
}

// write makes the scripts, one for the takes of each slot and one for its
// settlements, and counts them.
func (b *batch) write() {
	t := b.lane.transport
	for _, g := range b.groups {
		s := b.scriptOf(g)
		s.groups = append(s.groups, g)
	}
	for i := range b.scripts {
		s, checks := &b.scripts[i], 0
		for _, g := range s.groups {
			checks += len(g.Items)
		}
		t.counts.sizes[min(bits.Len(uint(checks-1)), len(t.counts.sizes)-1)].Add(1)
		t.counts.batched.Add(uint64(checks))
		s.pack(cmp.Or(b.now, t.Clock().UnixMicro()))
		b.command(s, "evalsha", scriptDigest)
	}
}

// scriptOf returns the script for a group.
func (b *batch) scriptOf(g *Group) *script {
	n := len(b.scripts)
	for i := range n {
		s := &b.scripts[i]
		if first := s.groups[0]; first.Slot == g.Slot && first.Items[0].Op.Settles() == g.Items[0].Op.Settles() {
			return s
		}
	}
	b.scripts = slices.Grow(b.scripts, 1)[:n+1] // with the buffers of an earlier script
	return &b.scripts[n]
}

// read gives every group its answer or its error. It returns what the trips say
// of Redis: an error that blames Redis, if there is one. The client never
// receives a caller's context, so a context's error here is the deadline's.
func (b *batch) read() (outcome error) {
	err := b.err
	if b.phase.Load() == phaseUnsent {
		err = trouble.ErrUnsent
	}
	if err != nil {
		for _, g := range b.groups {
			g.err = err
		}
		return err
	}
	for i := range b.scripts {
		if err := b.readScript(&b.scripts[i]); outcome == nil || trouble.Of(err).Effect == trouble.Failure {
			outcome = err
		}
	}
	return outcome
}

// readScript gives the groups of a script their answers or errors. If Redis has
// answered none of them, it returns an error.
func (b *batch) readScript(s *script) error {
	watcher := b.lane.transport.Watcher
	reply, err := s.cmd.Result()
	if err = trouble.AsTimeout(err); err == nil {
		err = s.read(reply)
	}
	if err != nil && !b.expired() { // otherwise expire has counted it
		watcher.Failed(err)
	}
	outcome, answered := err, false
	for _, g := range s.groups {
		if err == nil && g.err != nil { // the error of a stored key
			watcher.Failed(g.err)
		}
		g.err = cmp.Or(err, g.err)
		outcome, answered = cmp.Or(outcome, g.err), answered || g.err == nil
	}
	if answered {
		watcher.Answered()
		return nil
	}
	return outcome
}
