// Tests of limits that requests bring, and of their precedence.

package tests

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// perHour is a token bucket that a test recognises by its number.
func perHour(n int64) algorithms.Limit { return algorithms.TokenBucket(n, time.Hour) }

// bringing makes requests bring the limit in their field Limit, e.g. "20/1h". The text "bad" brings an invalid limit.
// Another text is an error.
func bringing(r *http.Request) (algorithms.Limit, error) {
	switch text := r.Header.Get("Limit"); text {
	case "":
		return algorithms.Limit{}, nil
	case "bad":
		return perHour(-1), nil
	default:
		return algorithms.ParseLimit(text)
	}
}

// TestPrecedence: the limit of an override, LimitOf, the tier's, Limit.
func TestPrecedence(t *testing.T) {
	candidate := perHour(99)
	bad := ratelimit.Override{Limit: algorithms.LeakyBucket(1, time.Hour)} // does not go together with ChargeIf
	for _, tt := range []struct {
		name     string
		override *ratelimit.Override
		key      string
		limit    string
		plan     string
		want     int64
		logged   string
	}{
		{"Limit holds for others.", nil, "", "", "", 10, ""},
		{"The tier holds.", nil, "", "", "gold", 20, ""},
		{"LimitOf beats the tier.", nil, "", "30/1h", "gold", 30, ""},
		{"LimitOf beats Limit.", nil, "", "30/1h", "", 30, ""},
		{"An override beats LimitOf.", &ratelimit.Override{Limit: perHour(40)}, "usr=me", "30/1h", "gold", 40, ""},
		{"An override of everyone beats LimitOf.", &ratelimit.Override{Limit: perHour(40)}, "*", "30/1h", "gold", 40, ""},
		{"An override without a limit leaves LimitOf.", &ratelimit.Override{}, "usr=me", "30/1h", "gold", 30, ""},
		{"A bad limit of LimitOf leaves the tier.", nil, "", "bad", "gold", 20, "invalid limit of LimitOf"},
		{"A bad limit of LimitOf leaves Limit.", nil, "", "bad", "", 10, "invalid limit of LimitOf"},
		{"A limit that New would refuse leaves the tier.", nil, "", "leaky-bucket 5/1h", "gold", 20, "invalid limit of LimitOf"},
		{"A concurrent limit beside ChargeIf leaves the tier.", nil, "", "concurrent 5/1m", "gold", 20, "invalid limit of LimitOf"},
		{"A database that fails leaves the tier.", nil, "", "down", "gold", 20, "failure of LimitOf"},
		{"A database that fails leaves Limit.", nil, "", "down", "", 10, "failure of LimitOf"},
		{"A bad override leaves LimitOf.", &bad, "usr=me", "30/1h", "gold", 30, "invalid limit of an override"},
		{"A bad override and a bad LimitOf leave the tier.", &bad, "usr=me", "bad", "gold", 20, "invalid limit of an override"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log logRecords
				table, l := overrides.NewMemory(), &spy{Limiter: newStill(t)}
				p := byPlan("p", perHour(10), map[string]algorithms.Limit{"gold": perHour(20)})
				p.LimitOf, p.Candidate, p.ChargeIf = bringing, &candidate, func(int) bool { return true }
				if tt.override != nil {
					override(t, table, "p", tt.key, *tt.override)
				}
				m := newMiddleware(t, l, &ratelimit.Options{Overrides: table, Logger: log.logger()}, p)
				v, err := m.Check(onPlan(with(from("192.0.2.1"), "Limit", tt.limit), tt.plan))
				got := v.Policies[0]
				if err != nil || got.Limit != perHour(tt.want) || got.UnknownTier {
					t.Errorf("got %+v, error %v; want %d requests", got, err, tt.want)
				}
				if tt.plan == "gold" != (got.Tier == "gold") {
					t.Errorf("got tier %q, want the plan's, %q, whatever the limit", got.Tier, tt.plan)
				}
				if tried := strings.Contains(l.asked(), "p~candidate"); tried != (tt.want == 10) {
					t.Errorf("got the candidate tried %t of %d requests, want it where Limit holds", tried, tt.want)
				}
				if lines := log.lines(); (len(lines) > 0) != (tt.logged != "") || len(lines) > 0 && !strings.Contains(lines[0], tt.logged) {
					t.Errorf("got %q in the log, want a line of %q", lines, tt.logged)
				}
			})
		})
	}
}

// TestLimitsOfOneRequest: a leaky bucket and a concurrent limit never meet in one call, wherever they come from.
func TestLimitsOfOneRequest(t *testing.T) {
	leaky, slots := algorithms.LeakyBucket(100, time.Second), algorithms.Concurrent(5, time.Minute)
	for _, tt := range []struct {
		name         string
		a, b         algorithms.Limit // of the configuration
		brings       [2]string
		wantA, wantB algorithms.Limit
	}{
		{"Two requests for one kind agree.", hourly, hourly, [2]string{"leaky-bucket 7/1h", "leaky-bucket 8/1h"}, algorithms.LeakyBucket(7, time.Hour), algorithms.LeakyBucket(8, time.Hour)},
		{"The second kind is refused.", hourly, hourly, [2]string{"leaky-bucket 7/1h", "concurrent 8/1m"}, algorithms.LeakyBucket(7, time.Hour), hourly},
		{"The second kind is refused the other way round.", hourly, hourly, [2]string{"concurrent 8/1m", "leaky-bucket 7/1h"}, algorithms.Concurrent(8, time.Minute), hourly},
		{"The configuration comes first, also if it is second.", hourly, slots, [2]string{"leaky-bucket 7/1h", ""}, hourly, slots},
		{"The configuration comes first, also if it is replaced.", hourly, leaky, [2]string{"concurrent 7/1m", "9/1h"}, hourly, perHour(9)},
		{"A hold that is too short is refused.", hourly, hourly, [2]string{"concurrent 7/10ms", ""}, hourly, hourly},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := byIP("a", tt.a), byIP("b", tt.b)
			for i, p := range []*ratelimit.Policy{&a, &b} {
				p.LimitOf = func(*http.Request) (algorithms.Limit, error) {
					if tt.brings[i] == "" {
						return algorithms.Limit{}, nil
					}
					return algorithms.ParseLimit(tt.brings[i])
				}
			}
			m := newMiddleware(t, newStill(t), &ratelimit.Options{Logger: quiet}, a, b)
			for range 3 { // nothing is left behind in the pool
				v, _ := m.Check(from("192.0.2.1")) // an error if a limit is Concurrent
				if v.Policies[0].Limit != tt.wantA || v.Policies[1].Limit != tt.wantB {
					t.Errorf("got %v and %v; want %v and %v", v.Policies[0].Limit, v.Policies[1].Limit, tt.wantA, tt.wantB)
				}
			}
		})
	}
}

// TestLimitOfIsAdvertised: headers describe the limit of the request, of as many limits as there are requests.
func TestLimitOfIsAdvertised(t *testing.T) {
	p := byIP("p", hourly)
	p.LimitOf = bringing
	h := newMiddleware(t, newStill(t), nil, p).Handler(ok)
	for i := range 1000 {
		n := 1 + i*7919%1000
		w := record(h, with(from(fmt.Sprintf("192.0.%d.%d", i/250, i%250)), "Limit", fmt.Sprintf("%d/1h", n)))
		if got, want := w.Header().Get("RateLimit-Policy"), fmt.Sprintf(`"p";q=%d;w=3600`, n); got != want || w.Header().Get("RateLimit-Remaining") != fmt.Sprint(n-1) {
			t.Fatalf("got\n%swant %s", limits(w.Header()), want)
		}
	}
}

// TestLimitOfSeesNoGuess: an unknown key asks neither the limiter nor LimitOf nor Cost.
func TestLimitOfSeesNoGuess(t *testing.T) {
	asked := 0
	l := &spy{Limiter: newStill(t)}
	p := ratelimit.Policy{Name: "p", Key: new(keyring).key(), Limit: hourly}
	p.LimitOf = func(*http.Request) (algorithms.Limit, error) { asked++; return perHour(1000), nil }
	p.Cost = func(*http.Request) int64 { asked++; return 5 }
	w := record(newMiddleware(t, l, nil, p).Handler(ok), presenting("192.0.2.1", "guess"))
	if w.Code != 401 || len(l.calls) != 0 || asked != 0 {
		t.Errorf("got status %d, the checks %+v and %d calls of the policy's functions, want 401 and none", w.Code, l.calls, asked)
	}
}

// TestLimitOfSettles: a settlement counts under the limit of its request, though an Update has changed Limit meanwhile.
func TestLimitOfSettles(t *testing.T) {
	for _, total := range []int64{5, 30} {
		t.Run(fmt.Sprint("a total of ", total), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, p := &spy{Limiter: newStill(t)}, lateByIP("p", hourly, 10)
				p.LimitOf = bringing
				m := newMiddleware(t, l, nil, p)
				h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					changed := p
					changed.Limit = perHour(77)
					if err := m.Update(changed); err != nil {
						t.Error(err)
					}
					settling(t, "p", total)(w, r)
				}))
				record(h, with(from("192.0.2.1"), "Limit", "1000/1h"))
				synctest.Wait()
				if len(l.calls) != 2 || l.calls[1][0].Limit != perHour(1000) {
					t.Fatalf("got calls %+v, want a settlement under 1000/1h", l.calls)
				}
				p.Limit = perHour(1000)
				if got := left(t, l.Limiter, p, "ip=192.0.2.1"); got != 1000-total {
					t.Errorf("got %d left, want %d", got, 1000-total)
				}
			})
		})
	}
}

// TestSettleAvoidsRefusedOverrides: an override that the request ignored does not settle it.
func TestSettleAvoidsRefusedOverrides(t *testing.T) {
	for name, limit := range map[string]algorithms.Limit{
		"It does not go together with another policy's limit.": algorithms.LeakyBucket(100, time.Hour),
		"It can neither return nor force units.":               algorithms.Concurrent(100, time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table, memory, seen := overrides.NewMemory(), newStill(t), new(eventLog)
				tokens, slots := lateByIP("tokens", daily, 10), byIP("slots", algorithms.Concurrent(5, time.Minute))
				if limit.Algorithm().Concurrent() {
					slots.Limit = algorithms.LeakyBucket(100, time.Second)
				}
				m := newMiddleware(t, memory, &ratelimit.Options{Overrides: table, Observers: []ratelimit.Observer{seen}, Logger: quiet}, tokens, slots)
				override(t, table, "tokens", "ip=192.0.2.1", ratelimit.Override{Limit: limit})
				record(m.Handler(settling(t, "tokens", 30)), from("192.0.2.1"))
				synctest.Wait()
				if got := left(t, memory, tokens, "ip=192.0.2.1"); got != 70 {
					t.Errorf("got %d left, want 70", got)
				}
				for _, e := range seen.of(ratelimit.Settled) {
					if e.Err != nil {
						t.Errorf("got %v, want every settlement made", e.Err)
					}
				}
			})
		})
	}
}
