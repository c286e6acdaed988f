// Tests of the findings about the configuration.

package middleware_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// findings returns what was found, e.g. "PS101 p, PS107 q".
func findings(m *ratelimit.Middleware) string {
	var all []string
	for _, f := range m.Findings() {
		all = append(all, f.Code+" "+f.Policy)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// fresh returns a value that it has not returned before.
func fresh() func(*http.Request) (string, error) {
	n := 0
	return func(*http.Request) (string, error) { n++; return strconv.Itoa(n), nil }
}

// TestDoctor: each mistake is found, named once in the log, and not where there is none.
func TestDoctor(t *testing.T) {
	const plenty = 600 // requests, of 20 clients, every tenth of them forwarded
	policy := func(key keyfunc.Key) ratelimit.Policy {
		return ratelimit.Policy{Name: "p", Key: key, Limit: algorithms.TokenBucket(1e6, time.Second)}
	}
	trusting := keyfunc.IP(&keyfunc.IPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	user := keyfunc.Custom("user", func(*http.Request) (string, error) { return "nobody", nil })
	tiny, private := policy(keyfunc.IP(nil)), policy(user)
	tiny.Limit, tiny.Cost = algorithms.TokenBucket(1e6, time.Second).WithBurst(5), costOf(6)
	private.Private = true
	nobody := policy(keyfunc.IP(nil))
	nobody.Limit = algorithms.Nobody()
	full := policy(keyfunc.IP(nil))
	full.Limit = algorithms.TokenBucket(1, time.Hour)
	for _, tt := range []struct {
		name      string
		policy    ratelimit.Policy
		forwarded int // of ten requests
		want      string
	}{
		{"nothing", policy(keyfunc.IP(nil)), 1, ""},
		{"an untrusted proxy", policy(keyfunc.IP(nil)), 10, "PS101 p"},
		{"one in a join", policy(keyfunc.Join(keyfunc.Const("a"), keyfunc.IP(nil))), 10, "PS101 p"},
		{"one of several", policy(keyfunc.FirstOf(keyfunc.Header("X-Tenant"), keyfunc.IP(nil))), 10, "PS101 p"},
		{"a trusted proxy", policy(trusting), 10, ""},
		{"one key", policy(user), 0, "PS102 p"},
		{"one key, on purpose", policy(keyfunc.Const("all")), 0, ""},
		{"one key, of capacity", private, 0, ""},
		{"fresh keys", policy(keyfunc.Custom("id", fresh())), 0, "PS103 p"},
		{"no route", policy(keyfunc.Join(keyfunc.IP(nil), keyfunc.Route())), 0, "PS104 p"},
		{"a client's route", policy(keyfunc.Custom("x", func(*http.Request) (string, error) { return "|rt=unmatched", nil })), 0, "PS102 p"},
		{"a cost above the burst", tiny, 0, "PS107 p"},
		{"a limit of nobody", nobody, 0, ""},
		{"denials", full, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log logRecords
			m := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: log.logger()}, tt.policy)
			h := m.Handler(ok)
			for i := range plenty {
				r := from(fmt.Sprint("192.0.2.", i/3%20))
				if i%10 < tt.forwarded {
					r.Header.Set("X-Forwarded-For", "198.51.100.1")
				}
				record(h, r)
			}
			if got := findings(m); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			lines := log.lines()
			if code, _, _ := strings.Cut(tt.want, " "); len(lines) != len(m.Findings()) || code != "" && !strings.Contains(lines[0], "code="+code+" policy=p remedy=") {
				t.Errorf("logged %q, want a line for each of %q", lines, tt.want)
			}
		})
	}
}

// TestDoctorExempt: who exempts a proxy that is not trusted exempts all of its clients.
func TestDoctorExempt(t *testing.T) {
	trusting := keyfunc.IP(&keyfunc.IPOptions{Trusted: prefixes("10.0.0.0/24")})
	for _, tt := range []struct {
		name     string
		clientIP keyfunc.Key
		peer     string
		every    int // of these requests is not forwarded, as a health check
		want     string
	}{
		{"an untrusted proxy", keyfunc.Key{}, "10.0.0.1", 50, "PS108 "},
		{"jobs", keyfunc.Key{}, "10.0.0.1", 1, ""},
		{"a few jobs send what they like", keyfunc.Key{}, "10.0.0.1", 2, ""},
		{"a trusted proxy", trusting, "10.0.0.1", 50, ""},
		{"behind a trusted proxy", trusting, "10.0.1.1", 50, ""},
		{"not exempt", keyfunc.Key{}, "192.0.2.1", 50, "PS101 p"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log logRecords
			p := byIP("p", algorithms.TokenBucket(1e6, time.Second))
			m := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: log.logger(), ClientIP: tt.clientIP, Exempt: prefixes("10.0.0.0/16")}, p)
			h := m.Handler(ok)
			for i := range 100 {
				r := from(tt.peer)
				if i%tt.every > 0 {
					r.Header.Set("X-Forwarded-For", "10.0.2.1")
				}
				record(h, r)
			}
			if got, lines := findings(m), log.lines(); got != tt.want || len(lines) != len(m.Findings()) {
				t.Errorf("got %q and log %q, want %q", got, lines, tt.want)
			}
		})
	}
}

// TestDoctorUpdate: what is found again after an Update is no news.
func TestDoctorUpdate(t *testing.T) {
	var log logRecords
	p := byIP("p", algorithms.TokenBucket(5, time.Second))
	p.Cost = costOf(6)
	m := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: log.logger()}, p)
	for range 3 {
		record(m.Handler(ok), from("192.0.2.1"))
		if err := m.Update(p); err != nil {
			t.Fatal(err)
		}
	}
	if got := findings(m); got != "PS107 p" || len(log.lines()) != 1 {
		t.Errorf("got %q, want PS107 once", got)
	}
}

// TestDoctorNesting: a handler that is wrapped twice charges twice; who Checks again means to.
func TestDoctorNesting(t *testing.T) {
	memory := newMemory(t)
	o := &ratelimit.Options{Logger: quiet}
	outer, inner := newMiddleware(t, memory, o, byIP("p", hourly), byIP("outer", hourly)), newMiddleware(t, memory, o, byIP("inner", hourly), byIP("p", hourly))
	record(outer.Handler(inner.Handler(ok)), from("192.0.2.1"))
	if got, of := findings(outer), findings(inner); got != "" || of != "PS105 p" {
		t.Errorf("got %q of the outer and %q of the inner, want PS105 of the inner", got, of)
	}
	again := newMiddleware(t, newMemory(t), o, byIP("p", hourly))
	record(again.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = again.Check(r) })), from("192.0.2.1"))
	if got := findings(again); got != "" {
		t.Errorf("of a Check: got %q, want nothing", got)
	}
}

// TestDoctorNeighbours: policies that count together must agree how much.
func TestDoctorNeighbours(t *testing.T) {
	memory, o := newMemory(t), &ratelimit.Options{Logger: quiet}
	first := newMiddleware(t, memory, o, byIP("p", hourly), byIP("q", hourly), byIP("r", hourly))
	same := newMiddleware(t, memory, o, byIP("p", hourly))
	elsewhere := newMiddleware(t, newMemory(t), o, byIP("p", algorithms.TokenBucket(1, time.Hour)))
	windows := byIP("q", algorithms.FixedWindow(10, time.Hour))
	windows.Tiers = map[string]algorithms.Limit{"gold": algorithms.FixedWindow(20, time.Hour)}
	windows.Tier = func(*http.Request) string { return "" }
	window := newMiddleware(t, memory, o, windows)
	tiered := byIP("r", hourly)
	tiered.Tiers, tiered.Tier = map[string]algorithms.Limit{"gold": hourly}, func(*http.Request) string { return "" }
	other := newMiddleware(t, memory, o, byIP("q", algorithms.TokenBucket(1, time.Hour)), tiered)
	odd := newMiddleware(t, uncomparable{memory}, o, byIP("p", algorithms.TokenBucket(1, time.Hour)))
	newMiddleware(t, uncomparable{memory}, o, byIP("p", hourly)) // and nothing panics
	for name, m := range map[string]*ratelimit.Middleware{"first": first, "same": same, "elsewhere": elsewhere, "window": window, "odd": odd} {
		if got := findings(m); got != "" {
			t.Errorf("%s: got %q, want nothing", name, got)
		}
	}
	if got := findings(other); got != "PS106 q, PS106 r" {
		t.Errorf("got %q, want PS106 of q and r", got)
	}
	if err := same.Update(byIP("p", algorithms.TokenBucket(1, time.Hour))); err != nil || findings(same) != "PS106 p" {
		t.Errorf("after an Update: got %q, %v, want PS106 of p", findings(same), err)
	}
	runtime.KeepAlive(first)
}

// An uncomparable limiter is one that == panics of.
type uncomparable []algorithms.Limiter

func (u uncomparable) Allow(ctx context.Context, checks []algorithms.Check) error {
	return u[0].Allow(ctx, checks)
}

// TestDoctorNeighboursOfAnyLimiter: a type that can be compared may hold what cannot.
func TestDoctorNeighboursOfAnyLimiter(t *testing.T) {
	type named struct {
		algorithms.Limiter
		name string
	}
	limiter := named{limiterFunc(newMemory(t).Allow), "a"}
	o := &ratelimit.Options{Logger: quiet}
	first := newMiddleware(t, limiter, o, byIP("p", hourly))
	second := newMiddleware(t, limiter, o, byIP("p", algorithms.TokenBucket(1, time.Hour)))
	if got := findings(second); got != "" {
		t.Errorf("got %q of what cannot be told apart, want nothing", got)
	}
	runtime.KeepAlive(first)
}

// TestDoctorSamples: what comes late is found, too.
func TestDoctorSamples(t *testing.T) {
	m := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: quiet}, byIP("p", algorithms.TokenBucket(1e6, time.Second)))
	h, w := m.Handler(ok), httptest.NewRecorder()
	for i := range 6000 {
		r := from("192.0.2.1")
		if i >= 1000 {
			r.Header.Set("Forwarded", "for=198.51.100.1")
		}
		h.ServeHTTP(w, r)
		if i == 1100 && findings(m) != "" {
			t.Errorf("after 100 requests that were forwarded, of which one or two are examined: got %q", findings(m))
		}
	}
	if got := findings(m); got != "PS101 p" {
		t.Errorf("got %q, want PS101", got)
	}
}

// TestDoctorIsDocumented: an operator who searches for a code finds it.
func TestDoctorIsDocumented(t *testing.T) {
	runbook, err := os.ReadFile("../RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"doctor.go", "../algorithms/shared/redis_findings.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		codes := regexp.MustCompile(`"(PS[0-9]{3})"`).FindAllSubmatch(source, -1)
		if len(codes) == 0 {
			t.Errorf("%s has no codes", file)
		}
		for _, code := range codes {
			if n := strings.Count(string(runbook), "\n| `"+string(code[1])+"` |"); n != 1 {
				t.Errorf("RUNBOOK.md has %d rows of %s, want 1", n, code[1])
			}
		}
	}
}

// TestDoctorAllocatesNothing: requests that are examined allocate what others do.
func TestDoctorAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	m := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: quiet}, byIP("p", algorithms.TokenBucket(1e9, time.Second)))
	h, w, r := m.Handler(ok), &sink{h: make(http.Header)}, with(from("192.0.2.1"), "X-Forwarded-For", "192.0.2.7")
	ask := func() {
		clear(w.h)
		h.ServeHTTP(w, r)
	}
	for range 50 { // and finds what there is to be found
		ask()
	}
	examined := testing.AllocsPerRun(800, ask)
	for range 1000 {
		ask()
	}
	if later := testing.AllocsPerRun(800, ask); examined > later {
		t.Errorf("got %v allocations for a request that is examined, want %v", examined, later)
	}
}
