// What becomes of a call whose caller has left.
//
// A Redis that stalled executes the scripts in its sockets when it resumes. By
// then this process has decided their calls. A call that was admitted without
// Redis is charged by that, which is right: its request was served, and the
// ledger does not owe its units. A call that was refused stays charged once.

package shared

import (
	"cmp"
	"time"
)

// started is the instant from which monotonic instants count.
var started = time.Now()

// monotonic returns an instant in µs.
func monotonic() int64 { return time.Since(started).Microseconds() }

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
