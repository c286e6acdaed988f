// How many batches are in flight at once.
//
// Redis works on a batch for about 100 µs, and meanwhile others can travel. So
//
//	goal = round trip / 100 µs, at least 4
//
// batches keep Redis busy and the network full. More of them only make each batch
// smaller, and a small batch costs Redis more per check.
//
// The round trip is the least of the last 5 to 10 s: a reply that waited for other
// batches says nothing of the network. For the same reason only a batch that was
// sent while at most two were in flight counts. Under load there is no such batch,
// and the floor would grow old. Then the lane drains: it sends no more than two at a
// time until one of them is answered.
//
// A Redis that is slow makes long trips, too, and more batches do not make it faster.
// So the level doubles, one batch after the other, and then must be worth a quarter of
// the batches that were added, in checks per second. Otherwise it goes back, until the
// lane has drained.
//
//	| event                                      | level                      |
//	|--------------------------------------------|----------------------------|
//	| nothing is known                           | 2                          |
//	| a batch is answered below 4                | one more                   |
//	| a level is below twice the base, and as    | one more, up to the goal   |
//	| many batches as may be in flight were      |                            |
//	| answered                                   |                            |
//	| five times as many were answered at twice  | the next base if that was  |
//	| the base, or at the goal                   | worth it, otherwise the base   |
//	| the goal is lower                          | the goal                   |
//	| a batch is late                            | 2                          |
//
// One more at a time lets the client's pool dial one connection at a time, and none
// while Redis is in trouble. Nothing grows unless as many as allowed were in flight.

package shared

const (
	fewInFlight = 2 // batches beside which a round trip is measured

	// batchTakes is how long Redis works on a batch, in µs.
	batchTakes = 100

	// blindInFlight bounds the batches of a client whose pool is not known.
	blindInFlight = 4

	// leastGoal is the goal on one machine, where a trip takes less than its batch.
	leastGoal = 4
)

// A flight controls how many batches of a lane are in flight. The zero value knows
// nothing yet. Instants are monotonic, in µs.
type flight struct {
	level int // batches that may be in flight, if the floor is known; 0 means 2
	trip  floor

	base int   // the last level that was worth it
	rate int64 // its checks per second; 0: not measured yet
	ends bool  // more than the base is not worth it

	// Since the level began, or, once as many batches were answered, since then:
	since           int64
	batches, checks int64 // that were answered
	full            bool  // as many as allowed were in flight
}

// allowed returns how many batches may be in flight, at most most.
func (f *flight) allowed(now int64, most int) int {
	if f.trip.at(now) == unknown {
		return min(fewInFlight, most)
	}
	return min(max(f.level, fewInFlight), most)
}

// answered notes a batch of so many checks that was answered at now, after a trip of
// so many µs. When it was sent, together were in flight, with itself. There may be at
// most most.
func (f *flight) answered(now, trip, checks int64, together, most int) {
	f.level = max(f.level, fewInFlight)
	if together <= fewInFlight {
		f.trip.observe(now, trip)
		if f.level > leastGoal { // the lane has drained
			f.begin(now, f.level)
			f.base, f.rate, f.ends = f.level, 0, false
		}
	}
	goal, least := fewInFlight, f.trip.at(now)
	if least != unknown {
		goal = int(max(leastGoal, least/batchTakes))
	}
	f.batches++
	f.checks += checks
	f.full = f.full || together >= f.level
	if f.full {
		f.grow(now, min(goal, most))
	}
	if highest := min(goal, most); f.level > highest {
		f.begin(now, highest)
		f.base, f.rate = highest, 0
	}
}

// grow takes the next level, if it is time for that.
func (f *flight) grow(now int64, highest int) {
	target := f.base
	if f.rate > 0 && !f.ends {
		target = min(2*f.base, highest)
	}
	switch n := int64(f.level); {
	case f.level < leastGoal:
		f.begin(now, f.level+1)
		f.base, f.rate, f.ends = f.level, 0, false
	case f.level < target:
		if f.batches >= n {
			f.begin(now, f.level+1)
		}
	case f.batches == n:
		f.since, f.checks = now, 0
	case f.batches >= 5*n && now > f.since:
		f.measured(now, f.checks*1_000_000/(now-f.since))
	}
}

// measured notes that the level has answered so many checks per second.
func (f *flight) measured(now, rate int64) {
	if added := int64(f.level - f.base); f.rate > 0 && (rate-f.rate)*4*int64(f.base) < f.rate*added {
		f.ends = true
		f.begin(now, f.base)
		return
	}
	f.base, f.rate = f.level, rate
	f.begin(now, f.level)
}

// begin begins a level.
func (f *flight) begin(now int64, level int) {
	f.level, f.since, f.batches, f.checks, f.full = level, now, 0, 0, false
}

// late notes that a batch was not answered in time.
func (f *flight) late(now int64) {
	f.begin(now, fewInFlight)
	f.base, f.rate, f.ends = 0, 0, false
}

// landed notes the round trip of a batch that was answered in time. It requires mu.
func (b *batch) landed() {
	if n := len(b.scripts); n > 0 {
		now := monotonic()
		b.lane.flight.answered(now, now-b.scripts[n-1].name.sent, int64(len(b.groups)), b.together, b.lane.redis.inFlight)
	}
}
