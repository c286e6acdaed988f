package client

import (
	"time"

	"github.com/penstock-go/penstock/headers"
)

// A pace spreads departures over the window that a server advertises. It is a pure
// function of the instants that it is given.
//
// A response that leaves r units for a time t makes the interval t/r. A response that
// leaves none blocks until t has passed; then the interval is that of the policy, if the
// server names one. The requests that left after the one that is answered may not be
// counted in r, so learn subtracts them.
//
// Other clients of the same quota make each interval too short. So each denial doubles a
// stretch of the interval, and each other response takes a part of the stretch away.
type pace struct {
	known   bool // a response has said how to go on
	probing bool // the first request is under way

	sent     uint64 // departures; a departure's turn is its number
	learned  uint64 // the latest turn that set the interval
	doubled  uint64 // the latest departure when the stretch was last doubled
	last     time.Time
	interval time.Duration
	stretch  float64 // at least 1
	blocked  time.Time
	most     time.Duration // neither the interval nor a block is longer
}

const (
	mostStretch = 64
	stretchLoss = 16 // a response takes 1/stretchLoss of the stretch
)

func newPace(most time.Duration) pace { return pace{most: most, stretch: 1} }

// delay returns the time until the next departure, at most p.most.
func (p *pace) delay(now time.Time) time.Duration {
	next := p.last.Add(p.spacing())
	if next.Before(p.blocked) {
		next = p.blocked
	}
	return max(next.Sub(now), 0)
}

// spacing is the interval between departures, stretched.
func (p *pace) spacing() time.Duration {
	if spacing := float64(p.interval) * p.stretch; spacing < float64(p.most) {
		return time.Duration(spacing)
	}
	return p.most
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
	interval, block, stated := p.read(f, p.sent-turn)
	if stated && turn > p.learned { // a later request's response knows more
		p.learned, p.interval = turn, interval
	}
	switch {
	case denied && turn > p.doubled:
		p.doubled, p.stretch = p.sent, min(2*p.stretch, mostStretch)
	case !denied:
		p.stretch = max(p.stretch-p.stretch/stretchLoss, 1)
	}
	if denied {
		block = max(block, f.Wait)
	}
	// Without an interval, all who wait would leave together at the end of the block.
	p.known = p.interval > 0 || block == 0
	if until := now.Add(min(block, p.most)); until.After(p.blocked) {
		p.blocked = until
	}
}

// read returns the longest interval and block of all limits, and whether there is any:
// servers need not send the fields with each response. unseen requests may not be counted.
func (p *pace) read(f *headers.Fields, unseen uint64) (interval, block time.Duration, stated bool) {
	for _, l := range f.Limits {
		steady := (&headers.ServiceLimit{Remaining: -1, Quota: l.Quota, Window: l.Window}).Pace()
		if l.Remaining > 0 {
			l.Remaining = max(l.Remaining-int64(unseen), 0)
		}
		switch {
		case l.Remaining == 0 && l.Within >= 0:
			interval, block, stated = max(interval, p.interval, steady), max(block, l.Within), true
		case l.Pace() > 0:
			interval, stated = max(interval, l.Pace()), true
		}
	}
	return interval, block, stated
}
