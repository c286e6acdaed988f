// The pace as a pure function: traces, and properties for random responses at random times.

package client

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
	"pgregory.net/rapid"
)

// TestPaceProperties: a denial's wait is kept, as far as requests wait, until a request that left during the hold succeeds. No
// delay is longer than the interval's bound or the block, and some request may always leave after p.most.
func TestPaceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Hour)).Draw(t, "most"))
		now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		l := lane{all: line{pace: newPace(most, true)}, routes: map[string]*line{}}
		w := &waiter{route: "GET /"}
		duration := rapid.OneOf(rapid.Int64Range(-1, int64(2*time.Hour)), rapid.Just(int64(headers.Never)))
		number := rapid.OneOf(rapid.Int64Range(-1, 100), rapid.Just(int64(999_999_999_999_999)))
		var kept time.Time // the end of the longest wait of a denial
		for range rapid.IntRange(1, 40).Draw(t, "responses") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(10*time.Minute)).Draw(t, "passes")))
			p := &l.lineOf(w).pace
			turn := p.depart(now)
			turn -= min(turn-1, uint64(rapid.IntRange(0, 3).Draw(t, "late")))
			during := p.tried(turn, now)
			v := &verdict{fields: headers.Fields{Limits: []headers.ServiceLimit{{
				Remaining: number.Draw(t, "r"), Within: time.Duration(duration.Draw(t, "t")),
				Quota: number.Draw(t, "q"), Window: max(time.Duration(duration.Draw(t, "w")), 0),
			}}}, status: http.StatusOK, denied: rapid.Bool().Draw(t, "denied")}
			if v.denied {
				v.status, v.fields.From, v.fields.Wait = http.StatusTooManyRequests, "Retry-After", max(time.Duration(duration.Draw(t, "wait")), 0)
				if end := now.Add(min(v.fields.Wait, mostHold)); end.After(kept) {
					kept = end
				}
			} else if during { // it disproves the waits
				kept = time.Time{}
			}
			l.learn(w, turn, v, now)

			p = &l.lineOf(w).pace
			got := p.delay(now)
			if told := kept.Sub(now); got < told && got < most {
				t.Fatalf("may leave in %v, told to wait %v: %+v", got, told, p)
			}
			if block := max(p.until.Sub(now), 0); got < 0 || got > max(block, most) {
				t.Fatalf("leaves in %v of at most %v, blocked for %v", got, most, block)
			}
			if later := p.delay(now.Add(most)); later > most {
				t.Fatalf("leaves in %v after %v without a departure", later, most)
			}
			if p.stretch < 1 || p.stretch > mostStretch || p.gap() < 0 || p.gap() > most {
				t.Fatalf("got the gap %v: %+v", p.gap(), p)
			}
		}
	})
}

// A step of a trace: departures at an instant, then the responses to turns, then the delay.
type step struct {
	at      time.Duration
	departs int
	learns  []learned
	delay   time.Duration
	probing bool
}

type learned struct {
	turn   uint64
	denied bool
	fields string // lines "Name: value", separated by " | "; "error" is no response
}

const second = time.Second

var traces = []struct {
	name  string
	steps []step
}{
	{"one request is under way while nothing is known", []step{
		{0, 1, nil, 0, true},
		{second, 0, []learned{{1, false, "error"}}, 0, false},
		{second, 1, nil, 0, true},
		{2 * second, 0, []learned{{2, false, ""}}, 0, false},
		{2 * second, 1, nil, 0, false},
	}},
	{"t/r", []step{{0, 1, []learned{{1, false, `RateLimit: "a";r=5;t=10`}}, 2 * second, false}}},
	{"the longest interval of several limits", []step{{0, 1, []learned{{1, false, `RateLimit: "a";r=5;t=10, "b";r=10;t=100`}}, 10 * second, false}}},
	{"unseen departures use up r", []step{{0, 3, []learned{{1, false, `RateLimit: "a";r=4;t=8`}}, 4 * second, false}}},
	{"unseen departures leave nothing", []step{{0, 3, []learned{{1, false, `RateLimit: "a";r=2;t=8`}}, 8 * second, false}}},
	{"a late response does not set the interval", []step{
		{0, 2, []learned{{2, false, `RateLimit: "a";r=10;t=10`}, {1, false, `RateLimit: "a";r=2;t=100`}}, second, false},
	}},
	{"a response without fields does not set the interval", []step{
		{0, 1, []learned{{1, false, `RateLimit: "a";r=10;t=10`}}, second, false},
		{second, 1, []learned{{2, false, ""}}, second, false},
		{2 * second, 1, []learned{{3, false, `RateLimit: "a";r=5`}}, second, false},
	}},
	{"the server has rounded t up", []step{
		{0, 1, []learned{{1, false, `RateLimit: "a";r=1;t=1 | RateLimit-Policy: "a";q=10;w=1`}}, second / 10, false},
		{second, 1, []learned{{2, false, `RateLimit: "a";r=2;t=9 | RateLimit-Policy: "a";q=10;w=1`}}, 3800 * time.Millisecond, false},
	}},
	{"a block, then the interval from before", []step{
		{0, 1, []learned{{1, false, `RateLimit: "a";r=10;t=10`}}, second, false},
		{second, 1, []learned{{2, false, `RateLimit: "a";r=0;t=20`}}, 20 * second, false},
		{21 * second, 1, nil, second, false},
	}},
	{"a block, then the interval of the policy", []step{
		{0, 1, []learned{{1, false, `RateLimit: "a";r=0;t=20 | RateLimit-Policy: "a";q=20;w=60`}}, 20 * second, false},
		{20 * second, 1, nil, 3 * second, false},
	}},
	{"a block, then one request if there is no interval", []step{
		{0, 1, []learned{{1, true, "Retry-After: 5"}}, 5 * second, false},
		{5 * second, 1, nil, 0, true},
	}},
	{"a shorter block does not replace a longer one", []step{
		{0, 2, []learned{{2, false, `RateLimit: "a";r=0;t=20`}, {1, false, `RateLimit: "a";r=0;t=1`}}, 20 * second, false},
	}},
	{"a denial doubles the interval, once for all that were under way", []step{
		{0, 1, []learned{{1, false, `RateLimit: "a";r=100;t=100`}}, second, false},
		{second, 3, []learned{{2, true, ""}, {3, true, ""}, {4, true, ""}}, 2 * second, false},
		{3 * second, 1, []learned{{5, true, ""}}, 4 * second, false},
		{7 * second, 1, []learned{{6, false, ""}}, 3500 * time.Millisecond, false},
	}},
	{"a long block lets one request go in each longest wait", []step{
		{0, 1, []learned{{1, false, `RateLimit: "a";r=0;t=3600`}}, time.Hour, false},
		{9 * time.Minute, 0, nil, 51 * time.Minute, false},
		{10 * time.Minute, 0, nil, 0, false},
		{10 * time.Minute, 1, nil, 50 * time.Minute, false},
	}},
}

func TestPaceTraces(t *testing.T) {
	begun := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, tt := range traces {
		p := newPace(10*time.Minute, true)
		for i, s := range tt.steps {
			now := begun.Add(s.at)
			for range s.departs {
				p.depart(now)
			}
			for _, l := range s.learns {
				p.learn(l.turn, "GET /", verdictOf(l, now), 0, now)
			}
			if got := p.delay(now); got != s.delay && p.open(now) || p.open(now) == s.probing {
				t.Errorf("%s, step %d: got %v, probing %v, want %v, %v", tt.name, i+1, got, !p.open(now), s.delay, s.probing)
			}
		}
	}
}

func verdictOf(l learned, now time.Time) *verdict {
	if l.fields == "error" {
		return nil
	}
	h := http.Header{}
	for line := range strings.SplitSeq(l.fields, " | ") {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	status := http.StatusOK
	if l.denied {
		status = http.StatusTooManyRequests
	}
	f := headers.Read(status, h, now)
	return &verdict{fields: f, status: status, denied: l.denied}
}
