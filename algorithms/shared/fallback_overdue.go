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
// Until the group has settled, the batch alone writes item.Answer and item.Now, and the
// layers alone write item.decision and item.unknown. Nobody writes Key, Limit, Cost and
// Receipt any more. Once the layers have decided the call, a goroutine waits for the
// group, at most until the client gives up.
//
// Example: the deadline is 50 ms, and Redis stalls for 0.3 s. A request for 1
// unit times out at 50 ms, and the memory admits it: 1 unit is unknown. At 300
// ms Redis executes the script and charges the unit: none is unknown. A login
// that fails closed gets 503 at 50 ms. At 300 ms it is charged, and the unit is
// returned at once, or before the circuit closes.

package shared

import (
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

// follow waits for the overdue group of a call that was decided, and acts on its reply.
func (f *fallback) follow(c *call, admitted bool) {
	err := <-c.settled
	for i := range c.items {
		it := &c.items[i]
		if it.part != c.part {
			continue
		}
		if err != nil && it.returnsShared() {
			f.ledger.keep(it, err)
		}
		if err != nil && trouble.Of(err).Executed { // no reply will say it
			f.ledger.doubt(it, err)
			continue
		}
		charged := err == nil && (it.Answer.Charged || it.Op == step.Force)
		if admitted && it.unknown && it.Op != step.Return {
			f.stats.unknown.Add(-it.Cost)
			if !charged {
				f.ledger.lost.Add(uint64(it.Cost))
			}
		}
		if charged && !it.Op.Settles() && !(admitted && it.Limit.Row.Owed) {
			f.ledger.takeBack(it)
		}
	}
}
