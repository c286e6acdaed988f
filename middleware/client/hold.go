package client

import (
	"cmp"
	"math"
	"time"
)

// A hold keeps the requests of a line back after a denial, and decides how many leave when it ends. It is a pure function
// of the instants and the random numbers that it is given.
//
// A hold ends by itself, at the latest 14 days after the last denial. This is all that changes it:
//
//	Event                                                The hold
//	a denial                                             begins, or lasts longer
//	the success of a trial of a denied route             ends, because the server was wrong or the limit has changed
//	the success of a trial of another route              ends for all routes except the denied ones: each of these gets
//	                                                     a line of its own, which is held as long as its denials say
//	a denied trial                                       the next one leaves after 1 s, then 2 s, 4 s, and so on
//	a trial that is neither, e.g. a failed connection    the next one leaves at once
//	a trial without an answer                            the next one leaves after 5 s
//	the success of a request that left before the hold   none
//
// A trial is a request that leaves during a hold. A request of a route that was not denied is a trial at once, one at a
// time. If the hold lasts longer than requests wait, a request of any route is one in each longest wait.
//
// Departures are numbered; a number is a turn. The answer to a turn after the mark opens a new period if it is a denial
// that holds: the mark becomes the latest turn, because the requests that are under way could not know of the denial.
// Their denials only lengthen the hold, and their successes belong to the period before.
//
// All requests at once would overrun the server when the hold ends, and one at a time would waste a slow server's time.
// So as many leave at once as the server admitted between the two denials. When these are used up and answered, requests
// leave one at a time, and each success lets one more be under way: the server may admit more than before. If the first
// request after a hold is denied, the hold was too short. Then one request leaves alone, and its success releases the rest.
//
// Example: a server admits 60 requests in a window of 6 s and denies the next of 32 workers. When the window is over, the
// 32 denied requests and 28 others leave, then one. It is denied, alone.
//
// If an answer takes longer than slowAnswer, one more request leaves, because one that hangs must not stop the others.
//
// A wait is the server's statement, or the backoff of denials in a row if it states none. A wait below a second may be
// rounded down, so a second denial in a row waits at least for the backoff. To a stated wait a random share of a tenth is
// added, at most a second, so that the clients of one limit do not return together. A backoff is a guess, so only half of
// the requests leave at once after it.
type hold struct {
	recovery
	most  time.Duration // requests wait no longer
	until time.Time
	last  time.Time // the latest departure

	routes map[string]time.Time // that were denied, and until when each waits
	trial  uint64               // the latest; 0: none
	denied int                  // trials of other routes in this hold
	tryAt  time.Time            // when the next may leave,
	trying bool                 // unless the answer to the latest changes that

	sent     uint64  // the latest turn
	mark     uint64  // the latest turn when the period began
	admitted uint64  // successes of turns after the mark
	answered uint64  // answers to turns after the mark
	before   uint64  // successes of the period before
	free     uint64  // turns after the mark that may leave at once
	atOnce   uint64  // further requests that may be under way
	denials  int     // holds in a row without a success between them
	random   float64 // of the period, in [0, 1)
}

const (
	unbounded = math.MaxInt64

	mostHold   = 14 * 24 * time.Hour // package headers writes no longer wait either
	mostJitter = time.Second         // beside a stated wait
	shortWait  = time.Second         // a shorter wait may be rounded down
	slowAnswer = 5 * time.Second
)

// delay returns how long no request of a denied route leaves.
func (h *hold) delay(now time.Time) time.Duration {
	left := h.until.Sub(now)
	if left > h.most && now.Sub(h.last) >= h.most {
		return 0
	}
	return max(left, 0)
}

// mayTry reports whether a request of a route is a trial: others were denied, and this route need not wait.
func (h *hold) mayTry(route string, now time.Time) bool {
	return len(h.routes) > 0 && h.until.After(now) && !h.routes[route].After(now)
}

// tried reports whether a turn is the latest trial of a hold that lasts.
func (h *hold) tried(turn uint64, now time.Time) bool { return turn == h.trial && h.until.After(now) }

// open reports whether a request may leave now, if the hold has ended.
func (h *hold) open(now time.Time) bool {
	left := h.sent - h.mark
	return left < h.free || left-h.answered < h.atOnce || h.slow(now) == 0
}

// slow returns how long requests wait for answers.
func (h *hold) slow(now time.Time) time.Duration {
	return max(h.last.Add(slowAnswer).Sub(now), 0)
}

func (h *hold) depart(now time.Time) (turn uint64) {
	h.sent++
	h.last = now
	if h.until.After(now) { // it belongs to no period
		h.mark, h.answered = h.sent, 0
		h.trial, h.trying, h.tryAt = h.sent, true, now.Add(slowAnswer)
	}
	return h.sent
}

// answer notes the end of a turn, and whether it was a success.
func (h *hold) answer(turn uint64, success bool) {
	h.trying = h.trying && turn != h.trial
	if turn <= h.mark {
		if success {
			h.before++
			h.free++
		}
		return
	}
	h.answered++
	if !success {
		return
	}
	h.admitted++
	h.denials, h.free = 0, cmp.Or(h.free, h.before)
	if h.mark == 0 { // the server has not denied yet
		h.atOnce = unbounded
	} else if turn-h.mark > h.free {
		h.atOnce++
	}
}

// deny holds requests after the denial of a turn, and reports whether it does.
func (h *hold) deny(turn uint64, route string, v *verdict, random float64, now time.Time) bool {
	if h.tried(turn, now) {
		h.tryAt = now.Add(firstBackoff << min(h.denied, 10))
		h.denied++
	}
	switch {
	case turn > h.mark:
		h.begin(v.stated(), random)
		h.denials++
	case !v.stated(): // the hold is no shorter
		left := h.until.Sub(now)
		h.extend(left, route, now)
		return left > 0
	}
	wait, in := min(v.fields.Wait, mostHold), h.denials // in a row
	if wait > 0 {
		in--
		wait += time.Duration(h.random * float64(min(wait/10, mostJitter)))
	}
	if wait < shortWait && in > 0 {
		wait = max(wait, h.recovery.wait(in, h.random, now))
	}
	h.extend(wait, route, now)
	return true
}

// extend holds requests for a wait from now, because a route was denied; "" stands for no denial.
func (h *hold) extend(wait time.Duration, route string, now time.Time) {
	if wait <= 0 {
		return
	}
	if !h.until.After(now) { // a new hold
		h.routes, h.trial, h.tryAt, h.denied = map[string]time.Time{}, 0, time.Time{}, 0
	}
	until := now.Add(min(wait, mostHold+mostJitter))
	if route != "" && until.After(h.routes[route]) {
		h.routes[route] = until
	}
	if until.After(h.until) {
		h.until = until
	}
}

// begin begins a period with a stated wait, or with a backoff.
func (h *hold) begin(stated bool, random float64) {
	if !stated {
		h.period(h.admitted, h.before)
	}
	h.free, h.before = h.admitted, cmp.Or(h.admitted, h.before)
	if !stated {
		h.free /= 2
	}
	h.mark, h.random = h.sent, random
	h.admitted, h.answered, h.atOnce = 0, 0, 1
}
