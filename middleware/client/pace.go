package client

import (
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
type pace struct {
	known   bool // a response has said how to go on
	probing bool // the first request is under way

	sent     uint64 // departures; a departure's turn is its number
	learned  uint64 // the latest turn that set the interval
	doubled  uint64 // the latest departure when the stretch was last doubled
	last     time.Time
	interval time.Duration
	steady   time.Duration // the interval of the policy; 0: unknown
	stretch  float64       // at least 1
	blocked  time.Time
	most     time.Duration // the longest interval
}

const (
	mostStretch = 64 // with more, the clients of one quota overshoot, and leave it unused
	stretchLoss = 8  // a response takes 1/stretchLoss of the stretch
)

func newPace(most time.Duration) pace { return pace{most: most, stretch: 1} }

// delay returns the time until the next departure. A block that lasts longer than requests
// wait lets one request go in each p.most, because the limit may have changed.
func (p *pace) delay(now time.Time) time.Duration {
	next, block := p.last.Add(p.spacing()), p.blocked.Sub(now)
	if block > p.most && now.Sub(p.last) >= p.most {
		block = 0
	}
	return max(next.Sub(now), block, 0)
}

// spacing is the interval between departures, stretched.
func (p *pace) spacing() time.Duration {
	if spacing := float64(p.interval) * p.stretch; spacing < float64(p.most) {
		return time.Duration(spacing)
	}
	return p.most
}

// least returns the shortest interval that may come. The present one may shrink when a
// window ends, and its stretch with each response.
func (p *pace) least() time.Duration {
	if p.steady > 0 {
		return min(p.steady, p.most)
	}
	return min(p.interval, p.most)
}

// depart notes a departure, and returns its turn.
func (p *pace) depart(now time.Time) (turn uint64) {
	p.sent++
	p.last, p.probing = now, !p.known
	return p.sent
}

// learn notes the response to a turn, or nil if there is none.
func (p *pace) learn(turn uint64, f *headers.Fields, denied bool, now time.Time) {
	p.probing = false
	if f == nil {
		return
	}
	told, stated := p.read(f, p.sent-turn)
	if stated && turn > p.learned { // a later request's response knows more
		p.learned, p.interval, p.steady = turn, told.interval, told.steady
	}
	switch {
	case denied && turn > p.doubled:
		p.doubled, p.stretch = p.sent, min(2*p.stretch, mostStretch)
	case !denied:
		p.stretch = max(p.stretch-p.stretch/stretchLoss, 1)
	}
	if denied {
		told.block = max(told.block, f.Wait)
	}
	// Without an interval, all waiting requests would leave together at the end of the block.
	p.known = p.interval > 0 || told.block == 0
	if until := now.Add(told.block); until.After(p.blocked) {
		p.blocked = until
	}
}

// told is the content of a response about the pace: the longest values of all its limits.
type told struct{ interval, steady, block time.Duration }

// read returns the content of a response, and whether there is any: servers need not send the fields with each
// response. The server may not have counted unseen requests.
func (p *pace) read(f *headers.Fields, unseen uint64) (t told, stated bool) {
	for _, l := range f.Limits {
		steady := (&headers.ServiceLimit{Remaining: -1, Quota: l.Quota, Window: l.Window}).Pace()
		if l.Remaining > 0 {
			l.Remaining = max(l.Remaining-int64(unseen), 0)
		}
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
