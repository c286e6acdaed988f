// Tests of shadow policies and candidates: they change nothing.

package tests

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// allAlgorithms are tight limits of every algorithm.
var allAlgorithms = []algorithms.Limit{
	algorithms.TokenBucket(3, time.Second).WithBurst(5),
	algorithms.LeakyBucket(1000, time.Second).WithBurst(4),
	algorithms.SlidingWindowCounter(5, time.Second),
	algorithms.SlidingWindowLog(4, time.Second),
	algorithms.FixedWindow(3, time.Second),
	algorithms.Nobody(),
}

// A shadow, and a candidate, change no answer and no live count, whatever their algorithm and however they decide.
func TestTrialsChangeNothing(t *testing.T) {
	missing := keyfunc.Header("X-Tenant") // of some requests only
	for _, live := range allAlgorithms[:5] {
		for _, trial := range allAlgorithms {
			t.Run(live.String()+" beside "+trial.String(), inBubble(func(t *testing.T) {
				policies := []ratelimit.Policy{byIP("each", live), forAll("all", algorithms.TokenBucket(20, time.Second))}
				watched := []ratelimit.Policy{policies[0], policies[1], byIP("shadow", trial), forAll("dark", trial), {Name: "tenants", Key: missing, Limit: trial}}
				for i := 2; i < len(watched); i++ {
					watched[i].Shadow = true
				}
				watched[0].Candidate = &trial
				stores := [2]*algorithms.Memory{}
				var handlers [2]http.Handler
				for i, p := range [][]ratelimit.Policy{policies, watched} {
					stores[i] = newMemory(t)
					handlers[i] = newMiddleware(t, stores[i], &ratelimit.Options{Headers: headers.Draft | headers.SeparateFields}, p...).Handler(ok)
				}
				r := rand.New(rand.NewPCG(1, 2))
				for step := range 150 {
					time.Sleep(time.Duration(r.Int64N(150)) * time.Millisecond)
					ip := fmt.Sprintf("192.0.2.%d", r.IntN(3))
					var answers [2]string
					tenant := r.IntN(2) == 0
					for i, h := range handlers {
						request := from(ip)
						if tenant {
							with(request, "X-Tenant", "a")
						}
						w := record(h, request)
						answers[i] = fmt.Sprint(w.Code, "\n", dump(w.Header()), w.Body.String())
						answers[i] += fmt.Sprint(left(t, stores[i], policies[0], "ip="+ip), left(t, stores[i], policies[1], "const=all"))
					}
					if answers[0] != answers[1] {
						t.Fatalf("step %d: got\n%s\nwith trials, and without\n%s", step, answers[1], answers[0])
					}
				}
			}))
		}
	}
}

// inBubble returns a test in simulated time.
func inBubble(f func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) { synctest.Test(t, f) }
}

// A shadow is charged for requests that every live policy admits, and a candidate for requests that every other policy
// admits.
func TestTrialsAreCharged(t *testing.T) {
	store, seen := newStill(t), new(eventLog)
	strict, loose := algorithms.TokenBucket(2, time.Hour), algorithms.TokenBucket(10, time.Hour)
	live, gate, shadow := byIP("live", algorithms.TokenBucket(4, time.Hour)), byIP("gate", algorithms.TokenBucket(6, time.Hour)), byIP("shadow", loose)
	live.Candidate, gate.Candidate, shadow.Shadow = &loose, &strict, true
	h := newMiddleware(t, store, &ratelimit.Options{Observers: []ratelimit.Observer{seen}}, shadow, live, gate).Handler(ok)
	for range 8 {
		record(h, from("192.0.2.1"))
	}
	for _, tt := range []struct {
		name  string
		limit algorithms.Limit
		left  int64
	}{
		{"live", live.Limit, 0}, {"gate", gate.Limit, 2}, {"shadow", loose, 6},
		{"live~candidate", loose, 2}, // of eight requests all but the live one admits
		{"gate~candidate", strict, 0},
	} {
		if got := left(t, store, ratelimit.Policy{Name: tt.name, Limit: tt.limit}, "ip=192.0.2.1"); got != tt.left {
			t.Errorf("%s: got %d left, want %d", tt.name, got, tt.left)
		}
	}
	got := map[string]int{}
	for _, e := range seen.of(ratelimit.Diverged) {
		got[fmt.Sprintf("%s live %t candidate %t", e.Policy, e.Live.Allowed, e.Candidate.Allowed)]++
	}
	want := map[string]int{"live live false candidate true": 4, "gate live true candidate false": 6}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got divergences %v, want %v", got, want)
	}
	verdicts := seen.of(ratelimit.Decided)
	if p := verdicts[7].Verdict.Policies; len(p) != 3 || p[0].Shadow || !p[2].Shadow || p[2].Name != "shadow" {
		t.Errorf("got policies %+v, want three, the shadow last", p)
	}
}

// Capacity policies deny with 503, unless another policy denies, too.
func TestCapacity(t *testing.T) {
	const reduced = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	one := algorithms.TokenBucket(1, time.Hour)
	for _, tt := range []struct {
		name             string
		capacity, client bool // deny
		status           int
		body             string
	}{
		{"capacity", true, false, 503, `{"type":"` + reduced + `","title":"Temporary Reduced Capacity","status":503}`},
		{"both", true, true, 429, `["client"]`},
		{"the client", false, true, 429, `["client"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			capacity, client := forAll("capacity", hourly), byIP("client", hourly)
			capacity.Capacity, capacity.Hidden = true, false
			if tt.capacity {
				capacity.Limit = one
			}
			if tt.client {
				client.Limit = one
			}
			h := newMiddleware(t, newStill(t), nil, capacity, client).Handler(ok)
			record(h, from("192.0.2.1"))
			w := record(h, from("192.0.2.1"))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.body) || w.Header().Get("Retry-After") == "" {
				t.Errorf("got %d, Retry-After %q and %s, want %d and %s", w.Code, w.Header().Get("Retry-After"), w.Body, tt.status, tt.body)
			}
		})
	}
}

func TestTrialMistakes(t *testing.T) {
	p := byIP("p", hourly)
	p.Shadow, p.Fail, p.Candidate = true, algorithms.FailClosed, &algorithms.Limit{}
	_, err := ratelimit.New(newStill(t), nil, p)
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{"Shadow and FailClosed", "Shadow and Candidate", "candidate: invalid"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}
