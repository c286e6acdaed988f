// Returns that Redis could not execute when they came. They are kept, and sent with
// the hand-back: each second, and before a circuit closes.
//
//	| a Return of a shared receipt has failed        | then                         |
//	|------------------------------------------------|------------------------------|
//	| Redis has certainly not executed it            | it is kept                   |
//	| perhaps it has, and its receipt names its      | it is kept: a repetition     |
//	| units (Row.TakesApart)                         | changes nothing              |
//	| perhaps it has, and its receipt does not       | it is lost: a repetition may |
//	|                                                | credit other units           |
//	| too many are kept, or its key is too long      | it is lost                   |
//
// A lost Return leaves its units charged until they drain.
//
// Takes without an answer. A take of a limit whose receipts name their units can be
// returned although it is unknown whether Redis has executed it: either the request
// was refused, or the memory counts it. Its Return may overtake it on another
// connection. So such a Return is sent three times, a second apart.
//
// Takes with a late answer. If the reply to a refused call says that Redis has charged it,
// its Return is sent at once, or, while the circuit is open, just before it closes.
//
// Example: five requests hold the five units of a Concurrent limit when Redis goes
// away for half a second. They end, and their Returns are kept. The probe after the
// outage succeeds, the five Returns are sent, and then the circuit closes: the next
// call finds five free units. Without them, it would wait for the end of the holds.

package shared

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

const (
	maxReturns = 100_000

	// doubtfulSends is how often a Return of a take without an answer is sent.
	doubtfulSends = 3
)

// A keptReturn is a Return of units that Redis has charged, or has perhaps charged.
type keptReturn struct {
	key     step.Key
	limit   step.Limit
	receipt step.Receipt
	cost    int64

	sends   int       // how often Redis must still execute it
	after   time.Time // it is not sent before
	sending bool
}

// keep keeps a Return that failed with err, and reports whether it did: otherwise
// the Return is lost.
func (l *ledger) keep(it *item, err error) (kept bool) {
	if !it.Limit.Row.TakesApart && trouble.Of(err).Executed {
		l.loseReturn(err)
		return false
	}
	return l.addReturn(it, &it.Receipt, 1, err)
}

// doubt keeps a Return of a take without an answer, if a receipt can name its units.
func (l *ledger) doubt(it *item, err error) {
	if it.Op.Settles() || it.Cost == 0 || !it.Limit.Row.TakesApart {
		return
	}
	named := step.Receipt{Units: it.Cost, ID: it.ID, Last: it.Cost, Source: uint8(algorithms.Shared), Row: it.Limit.Row}
	l.addReturn(it, &named, doubtfulSends, err)
}

// takeBack returns at once what a take has charged, whose call was refused before.
func (l *ledger) takeBack(it *item) {
	var charged step.Receipt
	it.Taken(&charged, uint8(algorithms.Shared))
	l.addReturn(it, &charged, 1, trouble.ErrOverloaded)
	select {
	case l.urgent <- struct{}{}:
	default:
	}
}

func (l *ledger) loseReturn(err error) {
	l.returnsLost.Add(1)
	l.report.lostReturn(err)
}

// addReturn keeps a Return of an item's units because of err, and reports whether there is room for it.
func (l *ledger) addReturn(it *item, r *step.Receipt, sends int, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.returns) >= maxReturns || len(it.Key.Text) > maxKept {
		l.loseReturn(err)
		return false
	}
	l.returns[&keptReturn{key: it.Key.Clone(), limit: it.Limit, receipt: *r, cost: it.Cost, sends: sends}] = true
	return true
}

// popReturns returns some Returns, which the caller sends.
func (l *ledger) popReturns() (due []sending) {
	clock := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for one := range l.returns { // begins anywhere
		if len(due) == handBackKeys {
			break
		}
		if !one.sending && clock.After(one.after) {
			one.sending = true
			sent := lone(step.Item{Key: one.key, Limit: one.limit, Op: step.Return, Cost: one.cost, Receipt: one.receipt})
			due = append(due, sending{sent, func(err error) { l.endReturn(one, err) }})
		}
	}
	return due
}

// endReturn notes how the sending of a Return ended.
func (l *ledger) endReturn(one *keptReturn, err error) {
	executed := trouble.Of(err).Executed
	l.mu.Lock()
	defer l.mu.Unlock()
	one.sending = false
	switch {
	case err == nil && one.sends > 1:
		one.sends, one.after = one.sends-1, time.Now().Add(refusedFor)
	case err == nil:
		delete(l.returns, one)
		l.returned.Add(1)
	case executed && !one.limit.Row.TakesApart:
		delete(l.returns, one)
		l.loseReturn(err)
	default:
		one.after = refusedUntil(err)
	}
}
