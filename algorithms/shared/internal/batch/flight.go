// How many batches are in flight at once.
//
// Redis works on a small batch for about 50 µs. Other batches can travel in
// that time. So
//
//	goal = round trip / 50 µs, at least 2
//
// batches keep Redis busy and the network full. Example: a Redis 0.5 ms away
// needs 10. On one machine a trip takes less time than its batch. There two
// batches are enough: Redis decides one while the other is packed. More batches
// only make each batch smaller, and a small batch costs Redis more per check.
//
// Measured over 0.5 ms with 16 callers: a goal of 5 makes a call wait 47 µs for
// a place in flight, and a check costs Redis 12 µs. A goal of 10 makes it wait
// 12 µs, for 15 µs of Redis. With 64 callers and more, both cost the same.
//
// While only few calls are in flight, none needs to wait, because no batch would become
// large. So while fewer than 4 calls are in flight, a caller that sends its own batch has
// a place in any case. Measured on one machine with 4 callers: 19 % more checks, the
// median falls from 112 to 83 µs, and p99 rises from 218 to 258 µs. A check costs Redis
// 16 µs instead of 13. With 8 instead of 4, 8 callers make 15 % fewer checks. Redis
// that is 0.2 ms away or more has a goal of 4 batches or more, so the rule changes little.
//
// The round trip is the least of the last 5 to 10 s, because a reply that
// waited for other batches says nothing of the network. For the same reason,
// only a batch counts that was sent while at most two were in flight. Under
// load there is no such batch, and the floor would grow old. Then the lane
// drains: it sends no more than two at a time until one of them is answered.
//
// A slow Redis makes long trips, too, and more batches do not make it faster.
// By Little's law
//
//	batches per second = batches in flight / mean trip
//
// While the mean trip stays near the floor, each further batch in flight adds
// to the batches per second. Once Redis is busy, each adds to the mean trip
// instead. So the level grows only while the mean trip is at most twice the
// floor: batches travel for at least as long as they wait. Above three times
// the floor it shrinks. Example: with a floor of 2 ms and 20 batches in flight,
// a mean trip of 3 ms lets the level grow, and 7 ms makes it shrink.
//
//	| event                                         | level                    |
//	|-----------------------------------------------|--------------------------|
//	| nothing is known                              | 2                        |
//	| as many batches as the level are answered,    | one more, up to the goal |
//	| in at most twice the floor on average         |                          |
//	| the same, in more than three times the floor  | one less, down to 2      |
//	| the goal is lower                             | the goal                 |
//	| a batch is late, or fails                     | 2                        |
//	| no batch was answered for 10 s                | 2                        |
//
// The level is at most four fifths of the client's pool. The rest serves the
// program's own commands, and the probes that find out whether Redis is back,
// while the connections of a broken network hang.
//
// One more at a time lets the client's pool dial one connection at a time, and
// none while Redis is in trouble. The level grows only if all allowed batches
// were in flight.

package batch

import "math"

const (
	fewInFlight = 2 // a round trip is measured beside at most so many
	fewCalls    = 4 // so many calls may be in flight, each in its caller's own batch

	// batchTakes is how long Redis works on a small batch, in µs.
	batchTakes = 50

	// blindInFlight bounds the batches of a client whose pool is not known.
	blindInFlight = 4
)

// A flight controls how many batches of a lane are in flight. The zero value knows
// nothing yet. Instants are monotonic, in µs.
type flight struct {
	level int // batches that may be in flight while the floor is known; 0 means 2
	floor floor
	last  int64 // when a batch was answered

	// Since the level began, or since level batches were answered:
	batches, trips int64 // answered batches, and the sum of their trips
	full           bool  // all allowed batches were in flight
}

// allowed returns how many batches may be in flight, at most most.
func (f *flight) allowed(now int64, most int) int {
	if f.floor.least(now, unknown) == unknown {
		return min(fewInFlight, most)
	}
	return min(max(f.level, fewInFlight), most)
}

// alone reports whether a caller may send its own batch beside so many calls in flight,
// though no more batches are allowed. While the floor is unknown, it may not, because the
// lane drains.
func (f *flight) alone(now int64, calls, most int) bool {
	return calls < min(fewCalls, most) && f.floor.least(now, unknown) != unknown
}

// answered notes a batch that was answered at now, after a trip of so many µs.
// When it was sent, together batches were in flight, including itself. most
// bounds the level.
func (f *flight) answered(now, trip int64, together, most int) {
	value := int64(unknown)
	if together <= fewInFlight {
		value = trip
	}
	floor := f.floor.least(now, value)
	if f.level < fewInFlight || now-f.last > 2*floorFor {
		f.begin(fewInFlight)
	}
	f.last = now
	f.batches++
	f.trips += trip
	f.full = f.full || together >= f.level
	if floor == unknown {
		return
	}
	n := int64(f.level)
	switch highest := min(int64(most), max(fewInFlight, floor/batchTakes)); {
	case n > highest:
		f.begin(int(highest))
	case f.batches < n:
	case f.trips > 3*floor*f.batches && n > fewInFlight:
		f.begin(f.level - 1)
	case f.trips <= 2*floor*f.batches && n < highest && f.full:
		f.begin(f.level + 1)
	default:
		f.begin(f.level)
	}
}

// begin begins a level.
func (f *flight) begin(level int) { f.level, f.batches, f.trips, f.full = level, 0, 0, false }

// failed notes that a batch was late, or that it failed.
func (f *flight) failed() { f.begin(fewInFlight) }

// answered reports whether Redis has run the last script of the batch.
func (b *batch) answered() bool {
	n := len(b.scripts)
	return n > 0 && b.scripts[n-1].cmd.Err() == nil
}

// floorFor is half of how long a value counts, in µs.
const floorFor = 5_000_000

// A floor finds the least of the values of the last 5 to 10 s. Instants are
// monotonic, in µs. The zero floor has seen no value.
type floor struct {
	began        int64 // when young began
	young, older int64 // the least since began, and of the 5 s before; unknown if there was no value
	seen         bool
}

const unknown = math.MaxInt64

// least notes a value, unless it is unknown, and returns the least recent value, or unknown.
func (f *floor) least(now, value int64) int64 {
	switch age := now - f.began; {
	case !f.seen || age >= 2*floorFor:
		*f = floor{began: now, young: unknown, older: unknown, seen: true}
	case age >= floorFor:
		f.began, f.young, f.older = f.began+floorFor, unknown, f.young
	}
	f.young = min(f.young, value)
	return min(f.young, f.older)
}
