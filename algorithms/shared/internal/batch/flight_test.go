// How many batches are in flight: the controller alone, and in simulations.

package batch

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
	// used returns batches, one each 100 µs, of a lane that always has all
	// allowed batches in flight. The first of them measures the floor.
	used := func(n int, floor, trip int64) (all []landing) {
		for i := range n {
			all = append(all, landing{at: 1_000 + 100*int64(i), trip: trip, together: 1_000})
		}
		all[0].together, all[0].trip = 1, floor
		return all
	}
	then := func(all []landing, more ...landing) []landing { return append(all, more...) }
	tests := map[string]struct {
		landings []landing
		most     int
		at       int64 // µs
		want     int
	}{
		"nothing is known":                 {nil, 32, 0, 2},
		"one machine, few callers":         {[]landing{{1, 60, 1, false}, {2, 60, 1, false}}, 32, 3, 2},
		"one machine, used":                {used(900, 60, 60), 32, 100_000, 2},
		"one more at a time":               {used(2, 1_100, 1_100), 32, 2_000, 3},
		"1.1 ms":                           {used(900, 1_100, 1_100), 32, 100_000, 22},
		"a pool of one":                    {used(900, 1_100, 1_100), 1, 100_000, 1},
		"a small pool":                     {used(900, 1_100, 1_100), 5, 100_000, 5},
		"trips beside others are no floor": {[]landing{{1_000, 300, 2, false}, {2_000, 9_000, 3, false}, {3_000, 9_000, 4, false}}, 32, 5_000, 2},
		"never as many as allowed":         {then(used(20, 1_100, 1_100), landing{4_000, 1_100, 2, false}), 32, 5_000, 7},
		"at most twice the floor":          {used(900, 1_100, 2_200), 32, 100_000, 22},
		"more than twice the floor":        {used(900, 1_100, 2_201), 32, 100_000, 3},
		"three times the floor":            {append(used(900, 1_100, 1_100), used(900, 1_100, 3_300)[1:]...), 32, 100_000, 22},
		"more than three times the floor":  {append(used(900, 1_100, 1_100), used(900, 1_100, 3_350)[1:]...), 32, 100_000, 2},
		"the network got faster":           {then(used(900, 1_100, 1_100), landing{100_000, 350, 2, false}), 32, 101_000, 7},
		"a floor that is old drains":       {used(900, 1_100, 1_100), 32, 11_000_000, 2},
		"after it has drained":             {then(used(110_000, 1_100, 1_100), landing{11_010_000, 1_000, 2, false}), 32, 11_010_001, 20},
		"after a quiet time":               {then(used(900, 1_100, 1_100), landing{11_000_000, 1_000, 1, false}), 32, 11_000_001, 2},
		"late":                             {then(used(9, 1_100, 1_100), landing{at: 60_000, late: true}), 32, 61_000, 2},
		"after late, two again":            {then(used(9, 1_100, 1_100), landing{at: 60_000, late: true}, landing{61_000, 1_100, 2, false}), 32, 62_000, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var f flight
			for _, l := range tt.landings {
				if l.late {
					f.failed()
					continue
				}
				f.answered(l.at, l.trip, l.together, tt.most)
			}
			if got := f.allowed(tt.at, tt.most); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// A simulation is a lane of callers that call again soon after their answers,
// and of a server that works on one batch at a time. Times are in µs.
type simulation struct {
	flight  flight
	callers int
	trip    func(now int64) int64         // both ways
	work    func(now, checks int64) int64 // on a batch

	random   *rand.Rand
	events   events
	free     int64 // when the server is free
	inFlight int
	flying   int     // calls in flight
	queue    []int64 // when the calls began

	highest int   // in flight at once
	sampled int   // batches that measured the floor
	calls   int64 // that were answered
	waited  int64 // by them, together
}

// An event is a call, or the answer to a batch.
type event struct {
	at, sent int64
	together int
	batch    []int64 // when its calls began; nil: a call
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// run runs until the end, with at most most batches in flight.
func (s *simulation) run(end int64, most int) {
	s.random = rand.New(rand.NewPCG(1, 2))
	for range s.callers {
		s.call(0)
	}
	for s.events[0].at < end {
		e := heap.Pop(&s.events).(event)
		if e.batch == nil {
			s.queue = append(s.queue, e.at)
		} else {
			s.answer(e, most)
		}
		s.send(e.at, most)
	}
}

func (s *simulation) call(now int64) { heap.Push(&s.events, event{at: now + s.random.Int64N(20)}) }

func (s *simulation) answer(e event, most int) {
	s.inFlight--
	s.flying -= len(e.batch)
	if e.together <= fewInFlight {
		s.sampled++
	}
	s.flight.answered(e.at, e.at-e.sent, e.together, most)
	for _, began := range e.batch {
		s.calls++
		s.waited += e.at - began
		s.call(e.at)
	}
}

func (s *simulation) send(now int64, most int) {
	for len(s.queue) > 0 && (s.inFlight < s.flight.allowed(now, most) || len(s.queue) == 1 && s.flight.alone(now, s.flying, most)) {
		n := min(len(s.queue), maxBatchWeight)
		batch := s.queue[:n:n]
		s.queue = s.queue[n:]
		s.inFlight++
		s.flying += n
		s.highest = max(s.highest, s.inFlight)
		trip := s.trip(now)
		s.free = max(now+trip/2, s.free) + s.work(now, int64(n))
		heap.Push(&s.events, event{s.free + trip/2, now, s.inFlight, batch})
	}
}

// Over any network few callers wait for little more than the round trip, many keep the
// server busy, and no more batches are in flight than that needs.
func TestFlightSimulated(t *testing.T) {
	constant := func(µs int64) func(int64) int64 { return func(int64) int64 { return µs } }
	random := rand.New(rand.NewPCG(1, 2)) // of one case
	jittery := func(µs int64) func(int64) int64 {
		return func(int64) int64 { return µs + random.Int64N(µs) }
	}
	work := func(_, checks int64) int64 { return 30 + 3*checks }
	slow := func(_, checks int64) int64 { return 2_000 + 3*checks }
	stalls := func(now, checks int64) int64 {
		if now%10_000_000 < 200 {
			return 40_000
		}
		return 30 + 3*checks
	}
	tests := map[string]struct {
		seconds int64
		callers int
		trip    func(int64) int64
		work    func(now, checks int64) int64
		wait    int64 // µs, on average, at most
		rate    int64 // calls per second, at least
		highest int   // batches in flight
	}{
		"0.05 ms, 4 callers":         {12, 4, constant(50), work, 180, 20_000, 4},
		"0.05 ms, 256 callers":       {2, 256, constant(50), work, 1_000, 250_000, 4},
		"0.5 ms, 4 callers":          {12, 4, constant(500), work, 600, 6_400, 4},
		"0.5 ms, 16 callers":         {12, 16, constant(500), work, 620, 25_500, 11},
		"0.5 ms, 256 callers":        {2, 256, constant(500), work, 1_130, 225_000, 11},
		"2 ms, 4 callers":            {12, 4, constant(2_000), work, 2_100, 1_850, 4},
		"2 ms, 16 callers":           {12, 16, constant(2_000), work, 2_100, 7_500, 20},
		"2 ms, 64 callers":           {12, 64, constant(2_000), work, 2_250, 28_000, 32},
		"2 ms, 256 callers":          {2, 256, constant(2_000), work, 2_450, 103_000, 32},
		"2 ms, 1 024 callers":        {2, 1_024, constant(2_000), work, 4_150, 248_000, 32},
		"20 ms, 256 callers":         {12, 256, constant(20_000), work, 21_500, 11_500, 32},
		"2 to 4 ms, 64 callers":      {12, 64, jittery(2_000), work, 3_500, 18_000, 32},
		"a slow server, 4 callers":   {12, 4, constant(500), slow, 8_300, 480, 4},
		"a slow server, 256 callers": {12, 256, constant(500), slow, 13_000, 19_000, 8},
		"a server that stalls, 64":   {12, 64, constant(2_000), stalls, 2_300, 27_500, 32},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := simulation{callers: tt.callers, trip: tt.trip, work: tt.work}
			s.run(tt.seconds*1_000_000, 32)
			wait, rate := s.waited/s.calls, s.calls/tt.seconds
			t.Logf("%d calls per second wait for %d µs, at most %d batches in flight, %d samples", rate, wait, s.highest, s.sampled)
			if wait > tt.wait || rate < tt.rate || s.highest > tt.highest {
				t.Errorf("want at least %d calls per second, a wait of at most %d µs, and at most %d batches", tt.rate, tt.wait, tt.highest)
			}
			if s.sampled < int(tt.seconds/10) {
				t.Errorf("got %d samples, want one in ten seconds at least", s.sampled)
			}
		})
	}
}

// The least of recent values.
func TestFloor(t *testing.T) {
	const second = 1_000_000
	type seen struct{ at, offset int64 } // at in seconds
	tests := map[string]struct {
		seen []seen
		now  int64
		want int64
	}{
		"nothing":                        {nil, 3, unknown},
		"one":                            {[]seen{{1, 70}}, 3, 70},
		"the least":                      {[]seen{{1, 70}, {2, 50}, {3, 90}}, 3, 50},
		"the least of the time before":   {[]seen{{1, 50}, {7, 90}}, 10, 50},
		"a least that is too old":        {[]seen{{1, 50}, {7, 90}, {13, 80}}, 13, 80},
		"none for ten seconds":           {[]seen{{1, 50}}, 11, unknown},
		"none for five to ten":           {[]seen{{1, 50}}, 10, 50},
		"before this process began":      {[]seen{{-20, -50}}, -19, -50},
		"a clock that stepped back":      {[]seen{{1, 50}, {2, -5_000_000}}, 2, -5_000_000},
		"none is older than ten seconds": {[]seen{{1, 50}, {10, 90}}, 14, 90},
		"a long silence, and then a one": {[]seen{{1, 50}, {100, 60}}, 100, 60},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var f floor
			for _, s := range tt.seen {
				f.least(s.at*second, s.offset)
			}
			if got := f.least(tt.now*second, unknown); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}
