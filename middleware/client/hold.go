package client

import (
	"math"
	"time"
)

// A hold keeps the requests of a lane back after a denial, and decides how many leave when it ends. It is a pure function
// of the instants and the random numbers that it is given.
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
// Without a statement, the denial may concern one route or one account. So after a denied request, another one asks at
// once, and only its denial lengthens the hold. The request that was denied twice waits by itself, and then behind the others.
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
	until time.Time
	most  time.Duration // requests wait no longer
	last  time.Time     // the latest departure

	recovery  recovery
	succeeded time.Time // the latest success
	passing   int       // above 0 if requests that come back after a denial without a statement succeed

	sent     uint64  // the latest turn
	mark     uint64  // the latest turn when the period began
	admitted uint64  // successes of turns after the mark
	answered uint64  // answers to turns after the mark
	before   uint64  // successes of the period before
	free     uint64  // turns after the mark that may leave at once
	atOnce   uint64  // further requests that may be under way
	denials  int     // holds in a row without a success between them
	asked    bool    // the first request after the hold was denied, and another one asks
	random   float64 // of the period, in [0, 1)
}

const (
	unbounded = math.MaxInt64

	mostJitter = time.Second // beside a stated wait
	shortWait  = time.Second // a shorter wait may be rounded down
	slowAnswer = 5 * time.Second
)

// delay returns how long no request leaves. If the hold lasts longer than requests wait, one leaves in each longest wait,
// because the limit may have changed.
func (h *hold) delay(now time.Time) time.Duration {
	left := h.until.Sub(now)
	if left > h.most && now.Sub(h.last) >= h.most {
		return 0
	}
	return max(left, 0)
}

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
	if h.recovery.spacing > 0 {
		h.extend(h.recovery.spacing, now)
	}
	return h.sent
}

// answer notes the end of a turn, and whether it was a success.
func (h *hold) answer(turn uint64, success bool) {
	current := turn > h.mark
	if current {
		h.answered++
	}
	switch {
	case !success:
	case !current:
		h.before++
		h.free++
	case h.mark == 0: // the server has not denied yet
		h.admitted++
		h.atOnce = unbounded
	default:
		h.admitted++
		h.denials = 0
		if h.free == 0 {
			h.free = h.before
		}
		if turn-h.mark > h.free {
			h.atOnce++
		}
	}
}

// A denial is an answer that may hold the lane.
type denial struct {
	wait   time.Duration
	stated bool // the server stated the wait
	others bool // others are queued, and may ask instead of it
}

// deny holds requests after the denial of a turn, and reports whether it does.
func (h *hold) deny(turn uint64, d denial, random float64, now time.Time) bool {
	switch {
	case turn <= h.mark && !d.stated:
		return h.until.After(now)
	case turn <= h.mark:
	case !d.stated && h.admitted == 0 && h.mark > 0 && d.others && !h.asked:
		h.asked = true
		return false
	default:
		if !d.stated {
			h.recovery.period(h.admitted, h.before)
		}
		h.begin(random)
		h.denials++
		if !d.stated {
			h.free /= 2
		}
	}
	wait, in := d.wait, h.denials // in a row
	if wait > 0 {
		in--
		wait = min(wait, math.MaxInt64-mostJitter)
		wait += time.Duration(h.random * float64(min(wait/10, mostJitter)))
	}
	if wait < shortWait && in > 0 {
		wait = max(wait, h.recovery.wait(in, h.random, now))
	}
	h.extend(wait, now)
	return true
}

// extend holds requests for a wait from now.
func (h *hold) extend(wait time.Duration, now time.Time) {
	if until := now.Add(wait); until.After(h.until) {
		h.until = until
	}
}

// begin begins a period.
func (h *hold) begin(random float64) {
	if h.free = h.admitted; h.free > 0 {
		h.before = h.free
	}
	h.mark, h.random = h.sent, random
	h.admitted, h.answered, h.atOnce, h.asked = 0, 0, 1, false
}
