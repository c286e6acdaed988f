// How many batches are in flight: the controller alone, and in simulations.

package shared

import (
	"container/heap"
	"math/rand/v2"
	"testing"
)

// A landing is a batch that was answered, or that was late.
type landing struct {
	at, trip int64 // µs
	together int
	late     bool
}

func TestFlight(t *testing.T) {
	// used returns batches, one each 100 µs, of a network in which all that may be in
	// flight always are.
	used := func(n int, trip int64) (all []landing) {
		for i := range n {
			all = append(all, landing{at: 1_000 + 100*int64(i), trip: trip, together: 1_000})
		}
		all[0].together = 1
		return all
	}
	tests := map[string]struct {
		landings []landing
		most     int
		at       int64 // µs
		want     int
	}{
		"nothing is known":                 {nil, 32, 0, 2},
		"one machine, few callers":         {[]landing{{1, 60, 1, false}, {2, 60, 1, false}}, 32, 3, 2},
		"one machine, used":                {used(900, 60), 32, 100_000, 4},
		"one more at a time":               {used(2, 2_200), 32, 2_000, 3},
		"a pool of one":                    {used(900, 2_200), 1, 100_000, 1},
		"a small pool":                     {used(900, 2_200), 5, 100_000, 4}, // a fifth is not worth it here
		"trips beside others are no floor": {[]landing{{1_000, 300, 2, false}, {2_000, 9_000, 3, false}, {3_000, 9_000, 4, false}}, 32, 5_000, 4},
		"not worth it":                     {used(900, 2_200), 32, 100_000, 4}, // always 10 000 batches per second
		"a floor that is old drains":       {used(900, 2_200), 32, 11_000_000, 2},
		"late":                             {append(used(9, 2_200), landing{at: 60_000, late: true}), 32, 61_000, 2},
		"after late, one more at a time":   {append(used(9, 2_200), landing{at: 60_000, late: true}, landing{61_000, 2_200, 2, false}), 32, 62_000, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var f flight
			for _, l := range tt.landings {
				if l.late {
					f.late(l.at)
					continue
				}
				f.answered(l.at, l.trip, 48, l.together, tt.most)
			}
			if got := f.allowed(tt.at, tt.most); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// A simulated lane of callers who always have a call for it, to a server that works
// on one batch at a time. Times are µs.
type simulation struct {
	flight  flight
	trip    func(now int64) int64 // both ways
	work    func(now int64) int64 // on a batch
	ends    arrivals
	free    int64 // when the server is free
	sampled int   // batches that were sent beside few others
	most    int   // in flight at once
}

type arrival struct {
	at, sent int64
	together int
}

type arrivals []arrival

func (a arrivals) Len() int           { return len(a) }
func (a arrivals) Less(i, j int) bool { return a[i].at < a[j].at }
func (a arrivals) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *arrivals) Push(x any)        { *a = append(*a, x.(arrival)) }
func (a *arrivals) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	*a = (*a)[:last]
	return x
}

// run sends as many batches as the controller allows, until the end, and returns how
// many are answered per second.
func (s *simulation) run(end int64, most int) int64 {
	var now, answered int64
	for now < end {
		for len(s.ends) < s.flight.allowed(now, most) {
			trip := s.trip(now)
			begins := max(now+trip/2, s.free)
			s.free = begins + s.work(now)
			heap.Push(&s.ends, arrival{s.free + trip/2, now, len(s.ends) + 1})
			s.most = max(s.most, len(s.ends))
		}
		next := heap.Pop(&s.ends).(arrival)
		now = max(now, next.at)
		if next.together <= fewInFlight {
			s.sampled++
		}
		s.flight.answered(now, now-next.sent, 48, next.together, most)
		answered++
	}
	return answered * 1_000_000 / end
}

// Over any network the controller keeps the server nearly as busy as it can be, and
// not many more batches in flight than that needs, for a minute.
func TestFlightSimulated(t *testing.T) {
	constant := func(µs int64) func(int64) int64 { return func(int64) int64 { return µs } }
	random := rand.New(rand.NewPCG(1, 2))
	jittery := func(µs int64) func(int64) int64 {
		return func(int64) int64 { return µs + random.Int64N(µs) }
	}
	const minute = 60_000_000
	tests := map[string]struct {
		trip, work func(int64) int64
		least      int64 // batches per second
		most       int   // in flight
	}{
		"0.05 ms":          {constant(50), constant(100), 9_500, 4},
		"0.5 ms":           {constant(500), constant(100), 9_500, 6},
		"2 ms":             {constant(2_000), constant(100), 9_000, 21},
		"20 ms":            {constant(20_000), constant(100), 1_400, 32},
		"2 ms with jitter": {jittery(2_000), constant(100), 6_500, 32},
		"a slow server":    {constant(500), constant(2_000), 490, 25},
		"a server that stalls": {constant(2_000), func(now int64) int64 {
			if now%10_000_000 < 200 {
				return 40_000
			}
			return 100
		}, 8_500, 22},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := simulation{trip: tt.trip, work: tt.work}
			got := s.run(minute, 32)
			t.Logf("%d batches per second, at most %d in flight, %d samples", got, s.most, s.sampled)
			if got < tt.least || s.most > tt.most {
				t.Errorf("got %d batches per second and %d in flight, want at least %d and at most %d", got, s.most, tt.least, tt.most)
			}
			if s.sampled < minute/(2*floorFor) {
				t.Errorf("got %d samples in a minute, want one in ten seconds at least", s.sampled)
			}
		})
	}
}
