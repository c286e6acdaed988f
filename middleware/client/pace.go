package client

import (
	"math"
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
// more than two intervals counts as late by two. Only turns that waited have this credit, and only while the server has
// units left. Otherwise, a server without a burst would deny the second of two close requests.
//
// Without Options.Pace, only the hold works.
type pace struct {
	hold
	spread bool      // Options.Pace
	dead   time.Time // since when each response is a 5xx without a wait; zero: the latest is not

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

// delay returns the time until the next departure.
func (p *pace) delay(now time.Time) time.Duration {
	return max(p.due.Add(p.spacing()).Sub(now), p.hold.delay(now))
}

// open reports whether a request may leave after the delay. Requests that are spread over a window need no other order.
func (p *pace) open(now time.Time) bool { return p.interval > 0 || p.hold.open(now) }

// spacing is the interval between departures, stretched.
func (p *pace) spacing() time.Duration {
	if spacing := float64(p.interval) * p.stretch; spacing < float64(p.most) {
		return time.Duration(spacing)
	}
	return p.most
}

// behind returns the least wait of a request that has some others before it. Without a policy, the interval may shrink when
// the window ends.
func (p *pace) behind(place int, now time.Time) time.Duration {
	interval, first := min(p.interval, p.most), p.delay(now)
	if p.steady > 0 {
		interval = min(p.steady, p.most)
	}
	if interval > 0 && int64(place) > int64((headers.Never-first)/interval) {
		return headers.Never
	}
	wait := first + time.Duration(place)*interval
	if p.steady == 0 {
		wait = min(wait, max(p.ends.Sub(now), first))
	}
	return wait
}

// depart notes the departure of a request that joined the queue at an instant, and returns its turn.
func (p *pace) depart(joined, now time.Time) (turn uint64) {
	spacing := p.spacing()
	due := p.due.Add(spacing)
	if p.until.After(due) {
		due = p.until
	}
	p.due = now
	if late := now.Sub(due); p.left > 0 && late > 0 && !joined.After(due) {
		p.due = now.Add(-min(late, mostCredit*spacing))
	}
	p.left--
	return p.hold.depart(now)
}

// learn notes the response to a turn; a verdict of nil means that there was none. random is in [0, 1).
// If a denial does not hold the other requests, held is false.
func (p *pace) learn(turn uint64, v *verdict, others bool, random float64, now time.Time) (held bool) {
	if v == nil {
		p.answer(turn, false)
		return false
	}
	p.answer(turn, !v.denied)
	p.judge(v)
	switch {
	case !v.broken:
		p.dead = time.Time{}
	case p.dead.IsZero():
		p.dead = now
	}
	switch {
	case !v.denied:
		p.succeeded = now
		p.recovery.succeed(v.left, v.again)
		p.recovery.admitted()
	case v.rate:
		p.recovery.deny(now)
	}
	if v.holds || v.denied && p.passing > 0 {
		held = p.deny(turn, denial{v.fields.Wait, v.stated, others}, random, now)
	}
	if !p.spread {
		return held
	}
	told, stated := p.read(v.fields, p.sent-turn)
	if stated && turn > p.learned { // a later request's response knows more
		p.learned, p.interval, p.steady, p.left = turn, told.interval, told.steady, told.left
		p.ends = now.Add(told.within)
	}
	switch {
	case v.denied && turn > p.doubled:
		p.doubled, p.stretch = p.sent, min(2*p.stretch, mostStretch)
	case !v.denied:
		p.stretch = max(p.stretch-p.stretch/stretchLoss, 1)
	}
	if told.block > 0 && p.interval == 0 && turn > p.mark { // or all requests would leave together when it ends
		p.begin(random)
	}
	p.extend(told.block, now)
	return held
}

// judge notes whether requests that were denied without a statement succeed when they come back.
func (p *pace) judge(v *verdict) {
	switch {
	case !v.again || v.stated:
	case !v.denied:
		p.passing = mostPassing
	case p.passing > 0:
		p.passing--
	}
}

// A verdict is a response, as the pace reads it.
type verdict struct {
	fields *headers.Fields
	denied bool
	holds  bool      // a denial may hold the lane
	again  bool      // the request has been denied without a statement before
	stated bool      // a denial states a wait
	rate   bool      // a denial is a 429 that states no wait; a 5xx says nothing about a rate
	broken bool      // a denial is a 5xx that states no wait
	left   time.Time // when the request was sent
}

// told is the content of a response about the pace: the longest values of all its limits, and the fewest units left.
type told struct {
	interval, steady, block, within time.Duration
	left                            int64
}

// read returns the content of a response, and whether there is any: servers need not send the fields with each
// response. The server may not have counted unseen requests.
func (p *pace) read(f *headers.Fields, unseen uint64) (t told, stated bool) {
	t.left = math.MaxInt64
	for _, l := range f.Limits {
		t.within = max(t.within, l.Within)
		steady := (&headers.ServiceLimit{Remaining: -1, Quota: l.Quota, Window: l.Window}).Pace()
		if l.Remaining > 0 {
			l.Remaining = max(l.Remaining-int64(unseen), 0)
		}
		t.left = min(t.left, l.Remaining)
		spent := l.Remaining == 0 && l.Within >= 0
		if !spent && steady > 0 { // the server has rounded t up; the policy's rate is exact
			l.Within = max(l.Within-time.Second, 0)
		}
		interval := max(steady, l.Pace())
		if spent {
			t.block = max(t.block, l.Within)
			interval = max(steady, p.interval)
		}
		t.interval, t.steady = max(t.interval, interval), max(t.steady, steady)
		stated = stated || spent || interval > 0
	}
	return t, stated
}
