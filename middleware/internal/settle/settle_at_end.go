// What becomes of reserved units when the handler ends: returned, charged, or kept.
//
// A reservation of n units ends when the handler returns:
//
//	the outcome does not count (ChargeIf)       all n units are returned
//	Settle has reported a total below n         the rest is returned
//	Settle has reported a total above n         the excess has been forced already; with ChargeIf
//	                                            it is forced now, because a Force cannot be returned
//	a concurrent limit                          all n units are returned
//	otherwise                                   n units stay charged
//
// Policy.ChargeIf receives the status that the wrapped handler wrote. The last column is for a policy that counts
// failures, status >= 400:
//
//	The answer comes from                                ChargeIf sees      Charged
//	the handler, or a middleware inside                  its status         from 400 up
//	the handler of an RPC: its code, by package rpc      its HTTP status    from 400 up
//	an inner Middleware that refuses                     429, 401, ...      yes
//	net/http, for a handler that wrote nothing           200                no
//	the handler, which panics afterwards                 its status         from 400 up
//	a recovery outside, or no one, after a panic         500                yes
//	no one, because the client has hung up               499                yes
//	a timeout outside, and the handler wrote nothing     504                yes
//	a timeout outside, and the handler wrote too late    the written one    from 400 up
//	the handler, after it took over the connection       101                no
//	gin or echo, without the lines in ChargeIf's doc     200                no
//	this Middleware, which refuses the request           not called         no
//
// A timeout outside is chi's middleware.Timeout, http.TimeoutHandler, or any other deadline of the request's context.

package settle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/internal/findings"
)

// statusClosedRequest is nginx's status for requests whose client hung up before
// the answer.
const statusClosedRequest = 499

// An ending is how a handler ended, and the status that counts.
type ending struct {
	findings.Ending
	status int
}

// endingOf returns how the handler of a request ended; s may be nil.
func endingOf(s *statusWriter, r *http.Request, panicked bool) (e ending) {
	if s == nil {
		return e
	}
	e.Writer, e.Written, e.status = s.ResponseWriter, s.status != 0, s.final()
	switch {
	case e.status != 0:
	case panicked:
		e.status = http.StatusInternalServerError
	case errors.Is(r.Context().Err(), context.DeadlineExceeded):
		e.status = http.StatusGatewayTimeout // a timeout middleware outside answers so
	case r.Context().Err() != nil:
		e.status = statusClosedRequest
	case e.Written:
		e.status = http.StatusInternalServerError // an RPC without a code that can be read is UNKNOWN
	default:
		s.note(http.StatusOK) // net/http's answer if a handler writes nothing
		e.status, e.Silent = cmp.Or(s.final(), http.StatusInternalServerError), true
	}
	return e
}

// end settles the reservations.
func (r *Reservations) end(e ending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.renewal != nil {
		r.renewal.Stop()
	}
	if r.renewing == 0 {
		r.returnHolds()
	}
	for i := range r.all {
		r.settleAtEnd(&r.all[i], e)
	}
}

func (r *Reservations) settleAtEnd(one *reservation, e ending) {
	if one.concurrent() { // returnHolds has returned the units
		if one.check.Op != algorithms.TrialInstead {
			held := time.Since(r.began)
			one.policy.Holds.add(held)
			one.policy.Held(findings.Hold{Lasted: held, Timed: r.timed})
		}
		return
	}
	rest := one.check.Cost // units that the request did not need
	if r.counts(one.policy, e) {
		r.force(one)
		if rest -= one.total; one.total < 0 {
			rest = 0
		}
	}
	if rest > 0 && one.check.Decision.Receipt.Units() > 0 {
		r.later(one, algorithms.Return, rest)
	}
}

// counts reports whether the outcome of the request counts. If ChargeIf panics, it
// counts, and the other policies settle all the same.
func (r *Reservations) counts(p *Policy, e ending) (counts bool) {
	if p.ChargeIf == nil {
		return true
	}
	defer func() {
		if why := recover(); why != nil {
			counts = true
			r.settler.Done(Report{Policy: p.Name, Err: fmt.Errorf("%w: ChargeIf panicked: %v", ErrNotSettled, why)})
		}
	}()
	p.Ended(e.Ending)
	return p.ChargeIf(e.status)
}
