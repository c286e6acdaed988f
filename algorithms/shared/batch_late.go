// Deadlines in scripts: Redis executes no script long after its caller gave up.
//
// A Redis that stalled executes the scripts in its sockets when it resumes. By
// then this process has decided their calls. So a script carries a deadline by
// the server's clock, and a script that comes later does nothing. It answers
// with the server's instant alone: it is late.
//
// This process does not know the server's clock. But each reply has the instant
// at which its script ran, and its
//
//	offset = the server's instant - this process's instant of sending
//	       = how far the server's clock is ahead + the trip to the server
//
// Adding an offset to an instant of this process gives an instant of the server
// that is never too early. A slow trip makes an offset larger, so the least
// offset of the last 10 s is the best. With it, the
//
//	deadline = when the caller gives up + offset + 100 ms
//
// comes at least 100 ms after the caller has given up, and at most one such
// trip later. A slow drift of clocks changes an offset by a few ms in 10 s; the
// 100 ms leave room for that. If no script was answered in the last 10 s, there
// is no deadline.
//
// Example: a script is sent at 1 000 ms of this process, runs at 5 003 ms of
// the server, and its caller gives up at 1 050 ms. The offset is 4 003 ms, so
// the next script, whose caller gives up at 1 100 ms, has the deadline 1 100 +
// 4 003 + 100 = 5 203 ms.
//
// The server's clock may step forward, or another server may have taken over
// the slot. Then a script counts as late although it came in time. It has done
// nothing, so the batch sends it again, with the offset of the late reply, at
// most twice. So a clock that steps loses no timely take. After a step
// backwards, deadlines are too late until the next reply.
//
// Settlements have no deadline, because their requests have been served. A
// batch puts them into scripts of their own.

package shared

import (
	"cmp"
	"time"
)

// scriptSlack is how long after its caller gave up a script may run.
const scriptSlack = 100 * time.Millisecond

// maxLate is how often a late script is sent again. Where a lane has slots of two
// masters, the first script for a slot may have the other master's offset, and a
// replica may be promoted before the second one comes.
const maxLate = 2

// started is the instant from which monotonic instants count.
var started = time.Now()

// monotonic returns an instant in µs.
func monotonic() int64 { return time.Since(started).Microseconds() }

// deadlineOf returns the deadline of a script whose callers give up at due, by
// a clock that is ahead by offset. It returns 0, no deadline, if the offset is
// unknown.
func deadlineOf(due, offset int64) int64 {
	if offset == unknown {
		return 0
	}
	return due + offset + scriptSlack.Microseconds()
}

// clocks are the clocks of a lane's servers. In a Cluster a lane may have slots
// of two masters, so each slot that was used has a floor of its own.
type clocks struct {
	lane  floor
	slots map[uint16]*floor // nil: one server
}

// at returns the least recent offset of a slot's server, or otherwise of the
// lane's.
func (c *clocks) at(slot uint16, now int64) int64 {
	if f := c.slots[slot]; f != nil {
		if least := f.at(now); least != unknown {
			return least
		}
	}
	return c.lane.at(now)
}

func (c *clocks) observe(slot uint16, now, offset int64) {
	c.lane.observe(now, offset)
	if f := c.of(slot); f != nil {
		f.observe(now, offset)
	}
}

// replace forgets all offsets of a slot's server except one.
func (c *clocks) replace(slot uint16, now, offset int64) {
	if f := c.of(slot); f != nil {
		f.replace(now, offset)
	} else {
		c.lane.replace(now, offset)
	}
}

// of returns the floor of a slot; nil if there is one server.
func (c *clocks) of(slot uint16) *floor {
	if c.slots == nil {
		return nil
	}
	f := c.slots[slot]
	if f == nil {
		f = new(floor)
		c.slots[slot] = f
	}
	return f
}

// expectClocks notes the known offsets of the servers' clocks, and when callers
// give up.
func (b *batch) expectClocks() {
	l, now := b.lane, monotonic()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range b.scripts {
		s := &b.scripts[i]
		s.offset = l.clocks.at(s.slot(), now)
		for _, g := range s.groups {
			due := b.due
			if g.due != 0 {
				due = min(due, g.due)
			}
			s.due = max(s.due, due)
		}
	}
}

// stepped notes the offset of a script that was late, although its callers
// still wait.
func (l *lane) stepped(s *script) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clocks.replace(s.slot(), monotonic(), s.offset)
}

// observe notes the offsets of the batch's scripts. It requires mu.
func (b *batch) observe() {
	now := monotonic()
	for i := range b.scripts {
		s := &b.scripts[i]
		if at, late, ok := s.answered(); ok && !late && s.name.sent != 0 {
			b.lane.clocks.observe(s.slot(), now, at-s.name.sent)
		}
	}
}

// tellLate reports to calls whose callers have left how they ended. The batch's
// trips have ended.
func (b *batch) tellLate() {
	if b.err != nil { // there are no scripts
		for _, g := range b.groups {
			g.tellLate(b.err)
		}
	}
	overdue := b.phase.Load() == phaseOverdue
	for i := range b.scripts {
		s := &b.scripts[i]
		err := ownDeadline(s.cmd.Err())
		switch reply, _ := s.cmd.Slice(); {
		case b.phase.Load() == phaseWithdrawn:
			err = errUnsent
		case overdue && err == nil:
			err = s.read(reply) // all callers have left, so this only finds errors
		}
		for _, g := range s.groups {
			g.tellLate(cmp.Or(err, g.err))
		}
	}
}

// tellLate reports to the group's call how it ended, if its caller has left.
func (g *group) tellLate(err error) {
	if g.left && g.late != nil {
		g.late(err)
	}
}
