// What becomes of a call that this process decided without Redis while Redis
// could still execute it. Redis executes it at once, or when it resumes from a
// stall, or never. Perhaps the reply says which, before the client gives up.
//
//	decided as  the reply: charged        the reply: not charged   no reply
//	admitted    its charge                its units are lost       its units stay unknown
//	refused     the units are returned    nothing to do            perhaps they stay charged
//
// Units that a receipt can name are returned without a reply, too: see
// fallback_returns.go. An admitted call with a limit that Redis is not owed, such as
// Concurrent, is returned, too: its units are held and given back in memory.
//
// The state of a call. Two events may come in either order: the layers decide the
// call, and its overdue group settles. The second one acts.
//
//	         the call fails            a group ends overdue
//	whole ─────────────────> failed   whole ──────────────> overdue
//
//	          decided             settled
//	overdue ──────────> decided ──────────> settled: acts
//	overdue ──────────────────────settled─> settled ── decided: acts
//
// Only a whole call goes back to the pool. While the call is overdue, the batch alone
// writes item.Answer and item.Now, and the layers alone write item.decision and
// item.fate. The layers read the fields of the batch once the group has settled, and
// nobody writes Key, Limit, Cost and Receipt any more.
//
// Example: the deadline is 50 ms, and Redis stalls for 0.3 s. A request for 1
// unit times out at 50 ms, and the memory admits it: 1 unit is unknown. At 300
// ms Redis executes the script and charges the unit: none is unknown. A login
// that fails closed gets 503 at 50 ms. At 300 ms it is charged, and the unit is
// returned at once, or before the circuit closes.

package shared

import "sync/atomic"

// The states of a call.
const (
	callWhole   uint32 = iota
	callFailed         // a batch may still read the items
	callOverdue        // Redis may still execute a group of it
	callDecided
	callSettled
)

// An overdue is the part of a call that matters once the call has failed. The zero
// value is a call that has not.
type overdue struct {
	state atomic.Uint32
	part  int    // the group that is overdue
	err   error  // why the group has no answers, once it has settled
	then  func() // acts
}

// fail notes that the call has failed. All its groups have ended.
func (o *overdue) fail() { o.state.CompareAndSwap(callWhole, callFailed) }

// goesOn notes that a group has ended overdue. It may have settled already.
func (o *overdue) goesOn(part int) {
	o.part = part
	o.state.CompareAndSwap(callWhole, callOverdue)
}

// isOverdue reports whether a group of the call has ended overdue.
func (o *overdue) isOverdue() bool { return o.state.Load() >= callOverdue }

// Settled implements [batch.Owner].
func (o *overdue) Settled(err error) {
	o.err = err
	if o.state.Swap(callSettled) == callDecided {
		o.then()
	}
}

// decided notes that an overdue call was decided. then acts, now or once the group has
// settled.
func (o *overdue) decided(then func()) {
	o.then = then
	if !o.state.CompareAndSwap(callOverdue, callDecided) {
		then()
	}
}
