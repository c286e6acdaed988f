// Guesses of API keys: what one address may try, and the part of a request with an
// unknown key. Package guess has the rules.

package ratelimit

import (
	"errors"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware/internal/guess"
	"github.com/penstock-go/penstock/middleware/internal/limits"
)

// guesses is the limit of an address's unknown keys, for verdicts. Its quota is nil,
// so headers keep silent about it.
var guesses = &limits.Limit{Limit: algorithms.TokenBucket(guess.Allowance, guess.Per)}

type guesser struct {
	address []byte        // of the client; empty until a key is looked up
	ticket  guess.Ticket  // of the look-up that runs
	lifted  bool          // an override lets the address try any key of the present policy
	wait    time.Duration // of the guess, if it is denied
}

// Admit implements keyaccess.Guard. It reports whether to look up an API key.
func (q *request) Admit(lookup any, key string) bool {
	g := &q.guesser
	if len(g.address) == 0 {
		// q.keys has no room: a key is being appended to it.
		address, _, err := q.m.clientIP.Append(g.address, &q.http)
		if err != nil {
			g.lifted = true
			return true
		}
		g.address = address
	}
	if g.lifted = string(g.address) == "ip=unknown"; g.lifted { // all clients whose address cannot be found
		return true
	}
	address := unsafe.String(unsafe.SliceData(g.address), len(g.address)) // until the look-up ends
	if g.ticket = q.m.guesses.Ask(q.http.Context(), address, lookup, key); g.ticket.Admitted {
		return true
	}
	o, found := q.m.find(q.asking.Name, address)
	if g.lifted = found && (o.Mode == ModeOff || o.Mode == ModeShadow); g.lifted {
		return true
	}
	g.wait = max(g.wait, g.ticket.Wait)
	return false
}

// Done implements keyaccess.Guard. It receives the result of a look-up.
func (q *request) Done(err error) {
	g := &q.guesser
	switch {
	case g.lifted:
	case err == nil:
		g.ticket.Valid()
	case errors.Is(err, keyfunc.ErrUnknown):
		g.wait = max(g.wait, g.ticket.Unknown())
	default:
		g.ticket.Failed()
	}
}

// addGuess adds the part of an unknown key: the policy that met the key, and the
// client's address. The limiter is not asked about it. What all clients share is not
// asked either: the request never uses it, so it must not take it from the others.
func (q *request) addGuess(met *policy) {
	q.parts = slices.DeleteFunc(q.parts, func(a part) bool { return (!a.policy.countsClient || a.policy.After != "") && !a.banned })
	start := len(q.keys)
	if _, err := q.address(); err != nil {
		q.refuseKey(met, err)
		return
	}
	a := q.newPart(met, start, len(q.keys))
	if o, found := q.m.find(met.Name, q.key(a)); found && o.Mode == ModeBanned {
		q.ban(a, &met.base.Limit, &reason{configured: met.base, mode: ModeBanned}, o.Until)
	}
	if !q.banned {
		a.set(&guesses.Limit, &reason{configured: guesses})
		a.guess, a.denied = true, q.guesser.wait
		q.add(a)
	}
}

// afterGuess returns what the other policies have charged and no handler will settle:
// held units, and those of ChargeIf, which does not count refused requests.
func (q *request) afterGuess() {
	for i := range q.parts {
		a := &q.parts[i]
		if !a.concurrent && a.policy.ChargeIf == nil {
			continue
		}
		for _, place := range [...]int{a.own, a.candidate, a.share} {
			if place < 0 || q.checks[place].Decision.Receipt.Units() == 0 {
				continue
			}
			c := q.checks[place]
			c.Key = strings.Clone(c.Key) // its bytes are the request's
			c.Op = algorithms.Return
			q.m.settler.Settle(a.policy.Name, c)
		}
	}
}
