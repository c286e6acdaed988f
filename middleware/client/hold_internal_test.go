// The hold, the recovery and the credit of late turns as pure functions: traces, and properties.

package client

import (
	"net/http"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/headers"
)

const ms = time.Millisecond

// TestLateTurns: a turn is due one interval after the turn before was due, if the server has units left.
func TestLateTurns(t *testing.T) {
	begun := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		left  int64
		leave []time.Duration
		next  time.Duration // the delay after the last departure
	}{
		"late by 3, 1 and 5 ms":   {50, []time.Duration{0, 103 * ms, 201 * ms, 305 * ms}, 95 * ms},
		"late by two intervals":   {50, []time.Duration{0, 300 * ms}, 0},
		"late by more":            {50, []time.Duration{0, 900 * ms, 900 * ms, 900 * ms}, 100 * ms},
		"the server has nothing":  {0, []time.Duration{0, 150 * ms}, 100 * ms},
		"the server has one unit": {1, []time.Duration{0, 150 * ms, 220 * ms}, 100 * ms},
	} {
		p := newPace(time.Minute, true)
		now := begun
		for i, at := range tt.leave {
			now = begun.Add(at)
			if wait := p.delay(now); wait > 0 {
				t.Errorf("%s: departure %d leaves %v early", name, i, wait)
			}
			p.depart(now)
			if i == 0 {
				p.interval, p.left = 100*ms, tt.left
			}
		}
		if got := p.delay(now); got != tt.next {
			t.Errorf("%s: the next leaves after %v, want %v", name, got, tt.next)
		}
	}
}

// A holdStep is departures and answers at an instant, then what the hold allows.
type holdStep struct {
	at        time.Duration
	leave     int
	successes []uint64 // turns
	denials   []uint64 // turns; each states wait
	wait      time.Duration
	delay     time.Duration
	open      int // how many may leave now, one after the other; 9 stands for no bound
}

var holdTraces = []struct {
	name  string
	steps []holdStep
}{
	{"no denial, no bound", []holdStep{{0, 9, []uint64{1, 2}, nil, 0, 0, 9}}},
	{"as many as before leave, then one at a time", []holdStep{
		{0, 5, []uint64{1, 2, 3}, []uint64{4}, 10 * second, 10 * second, 3},
		{10 * second, 3, nil, nil, 0, 0, 0},
		{11 * second, 0, []uint64{6, 7}, nil, 0, 0, 0},
		{12 * second, 0, []uint64{8}, nil, 0, 0, 1},
		{12 * second, 1, []uint64{9}, nil, 0, 0, 2},
		{13 * second, 2, []uint64{10, 11}, nil, 0, 0, 4},
	}},
	{"denials of earlier turns lengthen the hold", []holdStep{
		{0, 3, nil, []uint64{2}, 10 * second, 10 * second, 1},
		{second, 0, nil, []uint64{1}, 20 * second, 20 * second, 1},
		{2 * second, 0, nil, []uint64{3}, second, 19 * second, 1},
	}},
	{"successes of earlier turns let others go", []holdStep{
		{0, 4, nil, []uint64{1}, second, second, 1},
		{second, 1, []uint64{2, 3, 4}, nil, 0, 0, 2},
	}},
	{"a hold that was too short", []holdStep{
		{0, 4, []uint64{1, 2, 3}, []uint64{4}, 5 * second, 5 * second, 3},
		{5 * second, 1, nil, []uint64{5}, second, second, 1},
		{6 * second, 1, []uint64{6}, nil, 0, 0, 2},
	}},
	{"a short wait is kept once", []holdStep{
		{0, 1, nil, []uint64{1}, 100 * ms, 100 * ms, 1},
		{100 * ms, 1, nil, []uint64{2}, 100 * ms, 850 * ms, 1},
		{950 * ms, 1, nil, []uint64{3}, 100 * ms, 1275 * ms, 1},
		{3 * second, 1, []uint64{4}, nil, 0, 0, 2},
		{3 * second, 1, nil, []uint64{5}, 100 * ms, 100 * ms, 1},
	}},
}

func TestHoldTraces(t *testing.T) {
	begun := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, tt := range holdTraces {
		p := newPace(10*time.Minute, false)
		for i, s := range tt.steps {
			now := begun.Add(s.at)
			for range s.leave {
				p.depart(now)
			}
			for _, turn := range s.successes {
				p.answer(turn, true)
			}
			for _, turn := range s.denials {
				p.answer(turn, false)
				p.deny(turn, "GET /", statedDenial(s.wait), 0, now)
			}
			later, open := p.hold, 0
			later.until = now // when the hold has ended
			for later.open(now) && open < 9 {
				later.depart(now)
				open++
			}
			if got := p.delay(now); got != s.delay || open != s.open {
				t.Errorf("%s, step %d: %d may leave after %v, want %d after %v", tt.name, i+1, open, got, s.open, s.delay)
			}
		}
	}
}

// statedDenial is a denial that states a wait.
func statedDenial(wait time.Duration) *verdict {
	return &verdict{fields: headers.Fields{Wait: wait, From: "Retry-After"}, status: http.StatusTooManyRequests, denied: true}
}

// bareDenial is a denial without a wait.
func bareDenial() *verdict { return &verdict{status: http.StatusTooManyRequests, denied: true} }

// TestHoldProperties: a stated wait is kept up to 14 days, its random part is below a tenth and a second, and when all
// requests are answered, one may leave.
func TestHoldProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, now := hold{most: time.Hour, atOnce: unbounded}, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		var under []uint64
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "passes")))
			if h.delay(now) == 0 && h.open(now) && rapid.Bool().Draw(t, "leaves") {
				under = append(under, h.depart(now))
				continue
			}
			if len(under) == 0 {
				if !h.open(now) {
					t.Fatalf("nothing is under way, and nothing may leave: %+v", h)
				}
				continue
			}
			i := rapid.IntRange(0, len(under)-1).Draw(t, "answered")
			turn := under[i]
			under = append(under[:i], under[i+1:]...)
			success := rapid.Bool().Draw(t, "success")
			h.answer(turn, success)
			if success {
				h.recovery.succeed(now, true)
				continue
			}
			v := bareDenial()
			if rapid.Bool().Draw(t, "stated") {
				v = statedDenial(time.Duration(rapid.OneOf(rapid.Int64Range(0, int64(30*time.Minute)), rapid.Just(int64(headers.Never))).Draw(t, "wait")))
			} else {
				h.recovery.deny(now)
			}
			before, wait := h.delay(now), min(v.fields.Wait, mostHold)
			route := rapid.SampledFrom([]string{"GET /a", "GET /b"}).Draw(t, "route")
			held := h.deny(turn, route, v, rapid.Float64Range(0, 0.999).Draw(t, "random"), now)
			got := h.delay(now)
			most := max(before, wait+min(wait/10, time.Second), 2*backoffCap)
			if held && got < min(wait, time.Hour) && now.Sub(h.last) < time.Hour || got > most || got < before {
				t.Fatalf("held %v for %v, waits %v, before %v: %+v", held, got, wait, before, h)
			}
			if got > 0 && h.mayTry(route, now) {
				t.Fatalf("a denied route may try: %+v", h)
			}
		}
	})
}

// TestLateBareDenial: a bare denial of a request that was under way holds nothing once the hold is over, so the request waits
// by itself.
func TestLateBareDenial(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	h := hold{most: time.Hour, atOnce: unbounded}
	h.depart(now)
	h.depart(now)
	deny := func(turn uint64, at time.Time) bool { return h.deny(turn, "GET /", bareDenial(), 0, at) }
	if !deny(1, now) || !deny(2, now.Add(100*ms)) || deny(2, now.Add(second)) {
		t.Errorf("got %+v", h)
	}
}

// TestTrials: the pauses between trials double with each denied one, and begin again with the next hold.
func TestTrials(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	h := hold{most: time.Hour, atOnce: unbounded}
	for range 2 {
		h.deny(h.depart(now), "GET /", statedDenial(100*second), 0, now)
		for i, pause := range []time.Duration{0, second, 2 * second, 4 * second, 8 * second} {
			if got := max(h.tryAt.Sub(now), 0); got != pause || !h.mayTry("GET /other", now) {
				t.Errorf("trial %d leaves after %v, want %v", i+1, got, pause)
			}
			now = now.Add(pause)
			turn := h.depart(now)
			if !h.trying || h.tryAt.Sub(now) != slowAnswer {
				t.Errorf("trial %d: the next leaves after %v, want %v", i+1, h.tryAt.Sub(now), slowAnswer)
			}
			h.answer(turn, false)
			h.deny(turn, "GET /denied", statedDenial(100*second), 0, now)
		}
		now = now.Add(200 * second)
	}
}

// TestRecovery: the example of its documentation, and limits that change.
func TestRecovery(t *testing.T) {
	begun := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return begun.Add(time.Duration(s * 1e9)) }
	const whole = 0.375 // the random number whose wait is not varied
	r := recovery{}
	for i, want := range []float64{1, 1.5, 2.25, 3.375} {
		now := at([]float64{0, 1, 2.5, 4.75}[i])
		r.deny(now)
		if got := r.wait(i+1, whole, now); got.Round(ms) != time.Duration(want*1e9) {
			t.Errorf("wait %d is %v, want %v s", i+1, got, want)
		}
	}
	r.succeed(at(-1), true) // it left before the first denial
	r.succeed(at(8.125), true)
	if r.estimate != 4750*ms || !r.began.IsZero() {
		t.Errorf("learned %v, want 4.75 s", r.estimate)
	}
	r.deny(at(20))
	if got := r.wait(1, whole, at(20)); got.Round(ms) != 5250*ms {
		t.Errorf("waits %v, want 5.25 s", got)
	}
	r.succeed(at(22), true) // e.g. of another program's request
	if r.estimate != 2*second {
		t.Errorf("learned %v, want 2 s", r.estimate)
	}
	r.deny(at(30))
	r.deny(at(40))
	r.succeed(at(45), false)
	if r.estimate != 2*second || !r.began.IsZero() {
		t.Errorf("learned %v of a request with another limit", r.estimate)
	}
	r.deny(at(50))
	r.deny(at(500))
	r.succeed(at(501), true)
	if r.estimate != backoffCap {
		t.Errorf("learned %v, want at most %v", r.estimate, backoffCap)
	}
}

// TestSlidingServers: a server that admits fewer requests than before has recovered in part, so the waits become shorter, but
// not shorter than the first backoff.
func TestSlidingServers(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	r := recovery{estimate: 4 * second}
	for _, tt := range []struct {
		successes, before uint64
		estimate, wait    time.Duration
	}{
		{60, 60, 4 * second, 4500 * ms}, {0, 60, 4 * second, 4500 * ms}, {29, 60, 2 * second, 2500 * ms}, {28, 29, second, 1500 * ms},
		{2, 3, 500 * ms, second}, {2, 3, 250 * ms, second},
	} {
		r.period(tt.successes, tt.before)
		r.began = now
		if got := r.wait(1, 0.375, now); r.estimate != tt.estimate || got != tt.wait {
			t.Errorf("%d after %d: got %v, waits %v, want %v, %v", tt.successes, tt.before, r.estimate, got, tt.estimate, tt.wait)
		}
	}
}

// TestSpacing: after two periods of one success, requests leave a quarter of a second apart, then closer, until a denial.
func TestSpacing(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	r := recovery{}
	r.period(1, 1)
	r.period(3, 1)
	r.period(1, 1)
	if r.spacing != 0 {
		t.Errorf("got %v before two periods of one success", r.spacing)
	}
	r.period(1, 1)
	if r.spacing != 250*ms {
		t.Errorf("got %v, want 250 ms", r.spacing)
	}
	r.period(2, 1)
	if r.spacing != 312500*time.Microsecond {
		t.Errorf("got %v after a denial, want 312.5 ms", r.spacing)
	}
	if got := r.wait(1, 0.375, now); got != 625*ms {
		t.Errorf("waits %v, want twice the spacing", got)
	}
	r.succeed(now, false)
	if want := 312500 * time.Microsecond * 31 / 32; r.spacing != want {
		t.Errorf("got %v after a success, want %v", r.spacing, want)
	}
	for range 300 {
		r.succeed(now, false)
	}
	if r.spacing != 0 {
		t.Errorf("got %v after 300 successes", r.spacing)
	}
	r.spacing = 900 * ms
	r.period(0, 1)
	if r.spacing != second {
		t.Errorf("got %v, want at most a second", r.spacing)
	}
}
