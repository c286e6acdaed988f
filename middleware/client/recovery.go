package client

import (
	"math"
	"time"
)

// A recovery learns how long a server answers 429 that states no wait, e.g. until its window ends. It is a pure function of
// the instants and the random numbers that it is given.
//
// A series begins with a denial, and ends with the success of a request that left later. The latest denial in it and the
// success are bounds: the server recovers between them. The estimate is kept between these bounds. A series without a
// later denial shows no lower bound, so it takes a sixteenth of the estimate away, because the limit may have changed. The
// success of a request that was not denied before teaches nothing, because it may have another limit.
//
// Few requests of the lane ask at a time, so a question costs few denials. They ask half a second after the estimate, and at
// least a second after the denial. Then the waits grow by half from a second.
//
// If fewer requests succeed between two denials than between the two before, the server recovers bit by bit, as a sliding
// window does. So shorter waits admit requests, too, and the estimate is halved.
//
// If one success lies between denials, twice in a row, the server wants its requests spaced. They leave a quarter of a second
// apart. Each success takes a 32nd of this spacing away. A denial adds a quarter of it, up to a second.
//
// Example: a window of 6 s denies after 0 s, 1 s, 2.5 s and 4.8 s, and admits after 8.2 s. The estimate is 4.8 s. In the next
// window, the denied request asks after 5.3 s and 6.8 s.
type recovery struct {
	began    time.Time     // the first denial of the series; zero: none
	latest   time.Duration // since began, of the latest denial
	estimate time.Duration

	single  bool          // one success lay between the latest denials
	spacing time.Duration // between departures; 0: none
}

const (
	firstBackoff = time.Second
	firstSpacing = firstBackoff / 4
	leastSpacing = time.Millisecond
	backoffCap   = 30 * time.Second
	aliveCap     = 5 * time.Second // for a server that admits other requests
)

// varied returns a wait that is up to 15 % shorter than the given one, or up to 25 % longer.
func varied(wait time.Duration, random float64) time.Duration {
	return wait*17/20 + time.Duration(random*float64(wait*2/5))
}

// backoff returns how long a request waits after a number of its denials, while others go on.
func backoff(denials int, most time.Duration, random float64) time.Duration {
	return varied(min(firstBackoff<<min(denials-1, 10), most), random)
}

// deny notes a denial.
func (r *recovery) deny(now time.Time) {
	if r.began.IsZero() {
		r.began = now
	}
	r.latest = now.Sub(r.began)
}

// succeed notes the success of a request that left at an instant. If it was denied before, again is true.
func (r *recovery) succeed(left time.Time, again bool) {
	if r.spacing -= r.spacing / 32; r.spacing < leastSpacing {
		r.spacing = 0
	}
	if r.began.IsZero() || left.Before(r.began) {
		return
	}
	if again {
		if r.estimate > r.latest {
			r.estimate = min(r.estimate-r.estimate/16, left.Sub(r.began))
		}
		r.estimate = min(max(r.estimate, r.latest), backoffCap)
	}
	r.began = time.Time{}
}

// period notes how many successes lay between two denials, and between the two before.
func (r *recovery) period(successes, before uint64) {
	if 0 < successes && successes < before {
		r.estimate /= 2
	}
	if r.spacing > 0 {
		r.spacing = min(r.spacing+r.spacing/4, firstBackoff)
	} else if successes == 1 && r.single {
		r.spacing = firstSpacing
	}
	r.single = successes == 1
}

// wait returns how long all requests wait after a number of denials in a row.
func (r *recovery) wait(denials int, random float64, now time.Time) time.Duration {
	first := float64(firstBackoff)
	if r.spacing > 0 {
		first = min(first, 2*float64(r.spacing))
	}
	if left := r.estimate - now.Sub(r.began); !r.began.IsZero() && left > 0 {
		return max(left+varied(firstBackoff/2, random), varied(firstBackoff, random))
	}
	grown := first * math.Pow(1.5, float64(min(denials-1, 20)))
	return varied(time.Duration(min(grown, float64(backoffCap))), random)
}
