// What becomes of a call that this process decided without Redis while Redis
// could still execute it. Redis executes it at once, or when it resumes from a
// stall, or never. Perhaps the reply says which, before the client gives up.
//
//	decided as  the reply: charged        the reply: not charged   no reply
//	admitted    its charge                its units are lost       its units stay unknown
//	refused     the units are returned    nothing to do            perhaps they stay charged
//
// Units that a receipt can name are returned without a reply, too: see
// fallback_returns.go. A call whose caller left counts as refused. An admitted call with a limit
// that Redis is not owed, such as Concurrent, is returned, too: its units are
// held and given back in memory.
//
// What becomes of a call whose caller leaves or whose batch is overdue, and who
// owns its items meanwhile:
//
//	group is    caller      batch     the caller gets        owner of the items
//	queued      waits       none yet  nothing yet            the caller
//	queued      leaves      none      trouble.ErrUnsent              the caller
//	in flight   waits       in time   the answer             the batch, until the caller
//	                                                         has received from g.done
//	in flight   leaves      any       trouble.ErrTimeout; pending    both, see below
//	in flight   waits       unsent    trouble.ErrUnsent              the caller; the batch only sets
//	                                                         g.err, which no code reads
//	in flight   waits       overdue   trouble.ErrTimeout; pending    both
//
// After an error the call is givenUp: its items go to no other call. While both own
// the items of a pending call, the batch alone writes item.Answer, item.now and
// group.err, and the layers alone write item.decision, item.perhaps and item.settled.
// The layers read the fields of the batch only after its end. The layers may still read Key, Limit,
// Cost and Receipt, which nobody writes any more.
//
//	field            guarded by        says
//	group.batch      lane.mu           the batch whose end the caller waits for
//	group.abandoned  lane.mu; final    no caller waits for the group
//	                 at the end
//	call.group       the caller        the group whose end decided and groupEnded wait for
//	item.perhaps     the layers        Redis may have charged it, and has not answered
//	pending.bits     atomic            which of the decision and the end have come
//
// The decision and the end of the last group may come in either order. So each
// sets a bit, and the second one acts.
//
// Example: the deadline is 50 ms, and Redis stalls for 0.3 s. A request for 1
// unit times out at 50 ms, and the memory admits it: 1 unit is unknown. At 300
// ms Redis executes the script and charges the unit: none is unknown. A login
// that fails closed gets 503 at 50 ms. At 300 ms it is charged, and the unit is
// returned at once.

package shared

import (
	"slices"
	"sync/atomic"
)

// The bits of a pending call.
const (
	pendingAdmitted uint32 = 1 << iota
	pendingRefused
	pendingEnded
)

// A pending is the part of a call that matters once the call is under way. The zero
// value is a call that is not.
type pending struct {
	group *group // that is under way
	bits  atomic.Uint32
	then  func(g *group, admitted bool) // receives the group once it has ended and the call is decided
}

// isPending reports whether the end of an item is not known yet.
func (c *call) isPending(it *item) bool { return c.group != nil && slices.Contains(c.group.items, it) }

// groupEnded notes that a group has ended whose caller has left.
func (p *pending) groupEnded(g *group) {
	if decided := p.bits.Or(pendingEnded); decided != 0 {
		p.then(g, decided == pendingAdmitted)
	}
}

// decided notes how a call under way was decided.
func (p *pending) decided(admitted bool, then func(g *group, admitted bool)) {
	bit := pendingRefused
	if admitted {
		bit = pendingAdmitted
	}
	p.then = then
	if p.bits.Or(bit) != 0 {
		then(p.group, admitted)
	}
}
