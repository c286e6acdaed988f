// Deadlines in scripts: Redis executes nothing long after its caller gave up.
//
// A Redis that stalled executes the scripts in its sockets when it resumes, and by
// then this process has decided their calls. So a script carries a deadline by the
// server's clock, and a script that comes later does nothing. It answers with the
// server's instant alone: it is late.
//
// This process does not know the server's clock. But each reply has the instant at
// which its script ran, and its
//
//	offset = the server's instant - this process's instant of sending
//	       = how far the server's clock is ahead + the trip to the server
//
// is never less than what is to be added to an instant of this process. A slow
// trip makes an offset larger, so the least one of the last 10 s is the best, and
// with it
//
//	deadline = when the caller gives up + offset + 100 ms
//
// is up to that trip later than 100 ms after the caller has given up, and never
// earlier, unless the server's clock steps forward. A slow drift of clocks changes
// an offset by a few ms in 10 s, for which the 100 ms leave room. If no script was
// answered in the last 10 s, there is no deadline.
//
// If the server's clock did step, or another server has the slot now, scripts are
// late that are not. A late script has done nothing, so the batch sends it once
// more, with the offset of the very reply that said so. Nothing that is in time is
// lost. After a step backwards, deadlines are too late until the next reply.
//
// Settlements have no deadline, because what they settle has happened. A batch puts
// them into scripts of their own.

package shared

import (
	"math"
	"time"
)

const (
	// scriptSlack is how long after its caller has given up a script may run.
	scriptSlack = 100 * time.Millisecond

	// offsetsFor is half of how long an offset is used, in µs.
	offsetsFor = 5_000_000
)

// started is the instant from which monotonic instants count.
var started = time.Now()

// monotonic returns an instant in µs.
func monotonic() int64 { return time.Since(started).Microseconds() }

// An offsetFloor finds the least offset of the last 5 to 10 s. All instants and
// offsets are in µs. The zero value has seen none.
type offsetFloor struct {
	began        int64 // when least began
	least, older int64 // of the time since began, and of the 5 s before; noOffset if there was none
	seen         bool
}

const noOffset = math.MaxInt64

// at returns the least offset; noOffset if there is none that is recent.
func (f *offsetFloor) at(now int64) int64 {
	f.turn(now)
	return min(f.least, f.older)
}

// observe notes the offset of a script that was answered at now.
func (f *offsetFloor) observe(now, offset int64) {
	f.turn(now)
	f.least = min(f.least, offset)
}

// replace forgets all offsets except one.
func (f *offsetFloor) replace(now, offset int64) {
	*f = offsetFloor{began: now, least: offset, older: noOffset, seen: true}
}

func (f *offsetFloor) turn(now int64) {
	switch age := now - f.began; {
	case !f.seen || age >= 2*offsetsFor:
		*f = offsetFloor{began: now, least: noOffset, older: noOffset, seen: true}
	case age >= offsetsFor:
		f.began, f.least, f.older = now, noOffset, f.least
	}
}

// deadlineOf returns the deadline of a script whose callers give up at due, by a
// clock that is ahead by offset; 0 for none if the offset is not known.
func deadlineOf(due, offset int64) int64 {
	if offset == noOffset {
		return 0
	}
	return due + offset + scriptSlack.Microseconds()
}

// tellLate tells the calls whose callers have left how they ended. The batch's trips
// have ended.
func (b *batch) tellLate() {
	for i := range b.scripts {
		s := &b.scripts[i]
		for _, g := range s.groups {
			switch {
			case !g.left || g.late == nil:
			case b.phase.Load() == phaseWithdrawn:
				g.late(errUnsent)
			default:
				g.late(ownDeadline(s.cmd.Err()))
			}
		}
	}
}

// stepped notes the offset of a script that was late, though its callers wait.
func (l *lane) stepped(offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.replace(monotonic(), offset)
}

// observe notes the offsets of the batch's scripts. It requires mu.
func (b *batch) observe() {
	now := monotonic()
	for i := range b.scripts {
		s := &b.scripts[i]
		if at, late, ok := s.answered(); ok && !late {
			b.lane.clock.observe(now, at-s.name.sent)
		}
	}
}
