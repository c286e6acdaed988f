package client

import (
	"cmp"
	"math"
	"net/http"
	"time"

	"github.com/penstock-go/penstock/headers"
)

// A pace spreads departures over the window that a server advertises. It is a pure function of the instants that it is
// given.
//
// If a response leaves r units for a time t, the interval is t/r, but not shorter than the policy's. If a response
// leaves no unit, no request departs until t has passed. Then the interval is the policy's, if the server names a
// policy. r may not count requests that departed after the answered request, so learn subtracts them.
//
// Example: RateLimit says r=10;t=30, and 2 further requests are under way. 8 units are left for 30 s, so the next
// request departs after 3.75 s.
//
// Other clients of the same quota make each interval too short. So each denial doubles a factor, the stretch, and each
// other response takes a part of it away.
//
// Timers are late. A turn is due one interval after the turn before it was due, not after it left, so that lateness is not
// lost: at 100 ms, turns that leave at 0, 103, 201 and 305 ms are due at 0, 100, 200 and 300 ms. A turn that is late by
// more than two intervals counts as late by two. This credit exists only while the server has units left. Otherwise, a server
// without a burst would deny the second of two close requests.
//
// Without Options.Pace, only the hold and the spacing of the recovery work.
type pace struct {
	hold
	spread    bool      // Options.Pace
	dead      time.Time // since when each response is a 5xx without a wait; zero: the latest is not
	succeeded time.Time // the latest success
	passing   int       // above 0 if requests that come back after a denial without a statement succeed

	learned  uint64 // the latest turn that set the interval
	doubled  uint64 // the latest departure when the stretch was last doubled
	due      time.Time
	interval time.Duration
	steady   time.Duration // the interval of the policy; 0: unknown
	ends     time.Time     // when the window of the response to the turn learned is over
	left     int64         // units after the response to the turn learned, less the departures since
	stretch  float64       // at least 1
}

const (
	mostStretch = 64 // with more, the clients of one quota overshoot, and leave it unused
	stretchLoss = 8  // a response takes 1/stretchLoss of the stretch
	mostCredit  = 2  // intervals by which a turn may be late
	mostPassing = 4  // denials in a row after which a 5xx says nothing about a rate
)

func newPace(most time.Duration, spread bool) pace {
	p := pace{hold: hold{most: most, atOnce: unbounded}, spread: spread, stretch: 1}
	if spread { // one request is under way until the first answer
		p.atOnce = 1
	}
	return p
}

// renewed returns the pace of the other routes when the denied ones leave it: it has neither a hold nor an interval.
func (p *pace) renewed() pace {
	n := newPace(p.most, p.spread)
	n.sent, n.mark, n.last, n.atOnce = p.sent, p.sent, p.last, unbounded
	return n
}

// delay returns the time until the next departure.
func (p *pace) delay(now time.Time) time.Duration {
	return max(p.due.Add(p.gap()).Sub(now), p.hold.delay(now))
}

// open reports whether a request may leave after the delay. Requests that are spread over a window need no other order.
func (p *pace) open(now time.Time) bool { return p.interval > 0 || p.hold.open(now) }

// gap is the time between departures: the interval, stretched, or the spacing of the recovery.
func (p *pace) gap() time.Duration {
	if gap := float64(p.interval) * p.stretch; gap < float64(p.most) {
		return max(time.Duration(gap), p.spacing)
	}
	return p.most
}

// behind returns the least wait of a request that has some others before it. Without a policy, the interval may shrink when
// the window ends.
func (p *pace) behind(place int, now time.Time) time.Duration {
	interval, first := cmp.Or(p.steady, p.interval), p.delay(now)
	wait := first + time.Duration(place)*min(interval, p.most, (headers.Never-first)/time.Duration(max(place, 1)))
	if p.steady == 0 {
		wait = min(wait, max(p.ends.Sub(now), first))
	}
	return wait
}

// depart notes a departure, and returns its turn.
func (p *pace) depart(now time.Time) (turn uint64) {
	gap := p.gap()
	due := p.due.Add(gap)
	if p.until.After(due) {
		due = p.until
	}
	if p.due = now; p.left > 0 && now.After(due) {
		p.due = now.Add(-min(now.Sub(due), mostCredit*gap))
	}
	p.left--
	return p.hold.depart(now)
}

// A verdict is a response, as the pace reads it.
type verdict struct {
	fields headers.Fields
	status int
	denied bool
	again  bool      // the request has been denied without a statement before
	left   time.Time // when the request was sent
}

// stated reports whether a denial states a wait.
func (v *verdict) stated() bool { return v.denied && v.fields.From != "" }

// broken reports whether a denial is a 5xx that states no wait. It says nothing about a rate.
func (v *verdict) broken() bool {
	return v.denied && !v.stated() && v.status >= http.StatusInternalServerError
}

// learn notes the response to a turn; a verdict of nil means that there was none. random is in [0, 1).
// If a denial does not hold the other requests, held is false.
func (p *pace) learn(turn uint64, route string, v *verdict, random float64, now time.Time) (held bool) {
	p.answer(turn, v != nil && !v.denied)
	if v != nil {
		held = p.judge(turn, route, v, random, now)
		if p.spread {
			p.advertised(turn, v, random, now)
		}
	}
	if p.tried(turn, now) && !held { // it says nothing about the limit
		p.tryAt = now
	}
	return held
}

// judge notes whether the service is alive, and holds requests after a denial. A 5xx that states no wait holds others only
// while requests that come back after one succeed, or with Options.Pace.
func (p *pace) judge(turn uint64, route string, v *verdict, random float64, now time.Time) (held bool) {
	if !v.broken() {
		p.dead = time.Time{}
	} else if p.dead.IsZero() {
		p.dead = now
	}
	tooMany := v.status == http.StatusTooManyRequests
	switch {
	case !v.denied:
		p.succeeded = now
		p.recovery.succeed(v.left, v.again)
		if v.again {
			p.passing = mostPassing
		}
		return false
	case v.stated():
		return p.deny(turn, route, v, random, now)
	case v.again:
		p.passing = max(p.passing-1, 0)
	}
	if tooMany {
		p.recovery.deny(now)
	}
	return (tooMany || p.spread || p.passing > 0) && p.deny(turn, route, v, random, now)
}

// advertised notes what a response says about the limits: the longest values of all, and the fewest units left. Servers
// need not send the fields with each response. It also stretches the interval after a denial.
func (p *pace) advertised(turn uint64, v *verdict, random float64, now time.Time) {
	var steady, interval, block, within time.Duration
	left, stated := int64(math.MaxInt64), false
	for _, l := range v.fields.Limits {
		policy := (&headers.ServiceLimit{Remaining: -1, Quota: l.Quota, Window: l.Window}).Pace()
		within = max(within, l.Within)
		if l.Remaining > 0 { // the server may not have counted requests that left later
			l.Remaining = max(l.Remaining-int64(p.sent-turn), 0)
		}
		left = min(left, l.Remaining)
		spent, every := l.Remaining == 0 && l.Within >= 0, p.interval
		if spent {
			block = max(block, l.Within)
		} else {
			if policy > 0 { // the server has rounded t up; the policy's rate is exact
				l.Within = max(l.Within-time.Second, 0)
			}
			every = l.Pace()
		}
		every = max(policy, every)
		steady, interval = max(steady, policy), max(interval, every)
		stated = stated || spent || every > 0
	}
	if stated && turn > p.learned { // a later request's response knows more
		p.learned, p.interval, p.steady, p.left, p.ends = turn, interval, steady, left, now.Add(within)
	}
	switch {
	case v.denied && turn > p.doubled:
		p.doubled, p.stretch = p.sent, min(2*p.stretch, mostStretch)
	case !v.denied:
		p.stretch = max(p.stretch-p.stretch/stretchLoss, 1)
	}
	if block > 0 && p.interval == 0 && turn > p.mark { // or all requests would leave together when it ends
		p.begin(true, random)
	}
	p.extend(block, "", now)
}
