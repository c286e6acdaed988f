// Guesses of API keys: an unknown key costs the client's address, and an address that
// is denied for unknown keys is refused without a look-up until its RetryAfter.

package ratelimit

import (
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/keyaccess"
)

// guessed returns how long the request's address is still denied for unknown keys; 0 if
// it is not.
func (q *request) guessed() time.Duration {
	start := len(q.keys)
	keys, _, err := q.m.clientIP.Append(q.keys, &q.http)
	if err != nil {
		return 0
	}
	q.keys = keys
	wait := q.m.guesses.Wait(q.text(start, len(keys)), time.Since(q.m.made))
	q.keys = keys[:start]
	return wait
}

// identifyGuess makes the part of a request with an unknown key: the policy
// that met the key counts the client's address, one unit of Policy.Limit.
//
// If the address is denied already, for wait, the part is denied without a
// check, unless an override of the address lifts that.
func (q *request) identifyGuess(p *policy, wait time.Duration) {
	q.parts, q.keys, q.kinds = q.parts[:0], q.keys[:0], q.config.kinds
	keys, _, err := q.m.clientIP.Append(q.keys, &q.http)
	if err != nil {
		q.refuseKey(p, err)
		return
	}
	q.keys = keys
	a := q.newPart(p, 0)
	a.denied = wait
	asked := q.choose(a, "")
	switch {
	case q.banned:
		q.unknown = nil
	case wait > 0 && (!asked || a.shadow):
		q.lift(a)
	case asked:
		q.add(a)
	}
}

// lift ends the refusal of the address, because an override lets it pass, and
// identifies the request again.
func (q *request) lift(address *part) {
	q.m.guesses.Remove(q.key(address))
	keyaccess.NoLookup(&q.http, false)
	q.unknown, q.keys = nil, q.keys[:0]
	q.identifyAll(0)
}

// afterGuess ends the request of an unknown key. It returns a held unit,
// because no handler will. It remembers an address that is denied.
func (q *request) afterGuess() {
	for i := range q.checks {
		if c := q.checks[i]; c.Limit.Algorithm().Concurrent() && c.Decision.Receipt.Units() > 0 {
			c.Key = strings.Clone(c.Key) // its bytes are the request's
			c.Op = algorithms.Return
			q.m.settler.Settle(q.parts[0].policy.Name, c)
		}
	}
	if v := q.verdict; v.denied() && q.asked() && q.m.guesses != nil {
		q.m.guesses.Add(q.key(&q.parts[0]), v.RetryAfter, time.Since(q.m.made))
	}
}
