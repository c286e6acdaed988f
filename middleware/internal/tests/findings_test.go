// Tests of the findings about the configuration.

package tests

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
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// findings returns the present findings, e.g. "PS101 p, PS107 q".
func findings(m *ratelimit.Middleware) string {
	var all []string
	for _, f := range m.Findings() {
		all = append(all, f.Code+" "+f.Policy)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// TestFindings: each misconfiguration is found, and logged once. A good configuration has no findings.
func TestFindings(t *testing.T) {
	const plenty = 600 // requests, of 20 clients, every tenth of them forwarded
	policy := func(key keyfunc.Key) ratelimit.Policy {
		return ratelimit.Policy{Name: "p", Key: key, Limit: algorithms.TokenBucket(1e6, time.Second)}
	}
	trusting := keyfunc.IP(&keyfunc.IPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	tiny := policy(keyfunc.IP(nil))
	tiny.Limit, tiny.Cost = algorithms.TokenBucket(60, time.Minute).WithBurst(5), costOf(6)
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
		{"no proxy of the trusted ones", policy(trusting), 10, "PS113 p"},
		{"no route", policy(keyfunc.Join(keyfunc.IP(nil), keyfunc.Route())), 0, "PS104 p"},
		{"a client's route", policy(keyfunc.Custom("x", func(*http.Request) (string, error) { return "|rt=unmatched", nil })), 0, ""},
		{"a cost above the burst", tiny, 0, "PS107 p"},
		{"a limit of nobody", nobody, 0, ""},
		{"denials", full, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
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
				if code, _, _ := strings.Cut(tt.want, " "); len(lines) != len(m.Findings()) || code != "" && !strings.Contains(lines[0], "code="+code+" policy=p problem=") {
					t.Errorf("logged %q, want a line for each of %q", lines, tt.want)
				}
			})
		})
	}
}

// TestForwardedWithClientIP: a ClientIP without proxies counts the peer, too, unless it is a keyfunc.Peer on purpose.
func TestForwardedWithClientIP(t *testing.T) {
	for name, tt := range map[string]struct {
		clientIP keyfunc.Key
		want     string
	}{
		"no proxies": {keyfunc.IP(nil), "PS101 p"},
		"the peer":   {keyfunc.Peer(), ""},
		"proxies":    {keyfunc.IP(&keyfunc.IPOptions{Hops: 1}), ""},
	} {
		m := newMiddleware(t, newMemory(t), &ratelimit.Options{ClientIP: tt.clientIP, Logger: quiet}, byIP("p", algorithms.TokenBucket(1e6, time.Second)))
		for range 20 {
			record(m.Handler(ok), with(from("192.0.2.1"), "X-Forwarded-For", "198.51.100.1"))
		}
		if got := findings(m); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// TestFindingsUpdate: an Update ends a finding until a request shows its cause again, and that is no news.
func TestFindingsUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logRecords
		p := byIP("p", algorithms.TokenBucket(5, time.Second))
		p.Cost = costOf(6)
		m := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: log.logger()}, p)
		for range 3 {
			record(m.Handler(ok), from("192.0.2.1"))
			if got := findings(m); got != "PS107 p" {
				t.Errorf("got %q, want PS107", got)
			}
			if err := m.Update(p); err != nil {
				t.Fatal(err)
			}
			if got := findings(m); got != "" {
				t.Errorf("got %q after an Update, want nothing", got)
			}
		}
		if got := log.lines(); len(got) != 1 {
			t.Errorf("got %q, want PS107 once", got)
		}
	})
}

// TestFindingsNoStatus: a handler whose first hundred statuses ChargeIf did not see is found, until it writes one. A
// handler that has written one may be silent for long.
func TestFindingsNoStatus(t *testing.T) {
	p := byIP("p", algorithms.TokenBucket(1e6, time.Second))
	p.ChargeIf = func(status int) bool { return status == http.StatusUnauthorized }
	m := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: quiet}, p)
	silent := m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	writes := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	for _, step := range []struct {
		name     string
		handler  http.Handler
		requests int
		want     string
	}{
		{"silent", silent, 99, ""}, {"a hundred", silent, 1, "PS110 p"}, {"a status", writes, 1, ""}, {"silent again", silent, 300, ""},
	} {
		for range step.requests {
			record(step.handler, from("192.0.2.1"))
		}
		if got := findings(m); got != step.want {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
	}
}

// TestFindingsNesting: a handler that is wrapped twice charges twice. A second Check is intended.
func TestFindingsNesting(t *testing.T) {
	memory := newMemory(t)
	o := &ratelimit.Options{Logger: quiet}
	outer, inner := newMiddleware(t, memory, o, byIP("p", hourly), byIP("outer", hourly)), newMiddleware(t, memory, o, byIP("inner", hourly), byIP("p", hourly))
	record(outer.Handler(inner.Handler(ok)), from("192.0.2.1"))
	if got, of := findings(outer), findings(inner); got != "" || of != "PS105 p" {
		t.Errorf("got %q of the outer and %q of the inner, want PS105 of the inner", got, of)
	}
	far := newMiddleware(t, memory, o, byIP("p", hourly))
	between := newMiddleware(t, memory, o, byIP("q", hourly))
	record(outer.Handler(between.Handler(far.Handler(ok))), from("192.0.2.1"))
	if got := findings(far); got != "PS105 p" {
		t.Errorf("with another Middleware between: got %q, want PS105", got)
	}
	elsewhere := newMiddleware(t, newMemory(t), o, byIP("p", hourly))
	odd := newMiddleware(t, uncomparable{memory}, o, byIP("p", hourly))
	record(outer.Handler(elsewhere.Handler(odd.Handler(odd.Handler(ok)))), from("192.0.2.1"))
	if got := findings(elsewhere) + findings(odd); got != "" {
		t.Errorf("of other limiters: got %q, want nothing", got)
	}
	again := newMiddleware(t, newMemory(t), o, byIP("p", hourly))
	record(again.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = again.Check(r) })), from("192.0.2.1"))
	if got := findings(again); got != "" {
		t.Errorf("of a Check: got %q, want nothing", got)
	}
}

// TestFindingsSamples: a late cause is found, too.
func TestFindingsSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that no second passes
		m := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: quiet}, byIP("p", algorithms.TokenBucket(1e6, time.Second)))
		h, w := m.Handler(ok), httptest.NewRecorder()
		for i := range 6000 {
			r := from("192.0.2.1")
			if i >= 1000 {
				r.Header.Set("Forwarded", "for=198.51.100.1")
			}
			h.ServeHTTP(w, r)
			if i == 1100 && findings(m) != "" {
				t.Errorf("after 100 requests that were forwarded, one or two of them examined: got %q", findings(m))
			}
		}
		if got := findings(m); got != "PS101 p" {
			t.Errorf("got %q, want PS101", got)
		}
	})
}

// An uncomparable limiter is one that == panics of.
type uncomparable []algorithms.Limiter

func (u uncomparable) Allow(ctx context.Context, checks []algorithms.Check) error {
	return u[0].Allow(ctx, checks)
}

// TestFindingsOfASmallLimit: a middleware that is mounted where no route is known denies everybody, and says why.
func TestFindingsOfASmallLimit(t *testing.T) {
	p := ratelimit.Policy{Name: "p", Key: keyfunc.Route(), Limit: algorithms.TokenBucket(3, time.Hour)}
	m := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: quiet}, p)
	for range 200 {
		record(m.Handler(ok), from("192.0.2.1"))
	}
	if got := findings(m); got != "PS104 p" {
		t.Errorf("got %q, want PS104", got)
	}
}

// TestFindingsIsDocumented: an operator who searches for a code finds it.
func TestFindingsIsDocumented(t *testing.T) {
	runbook, err := os.ReadFile("../../../RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"../findings/causes.go", "../../../algorithms/shared/redis_findings.go", "../../overrides/table.go"} {
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

// TestFindingsAllocatesNothing: examined requests allocate no more than others.
func TestFindingsAllocatesNothing(t *testing.T) {
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

func BenchmarkNew(b *testing.B) {
	for _, others := range []int{0, 10_000} {
		b.Run(fmt.Sprintf("beside=%d", others), func(b *testing.B) {
			memory, o := newMemory(b), &ratelimit.Options{Logger: quiet}
			all := make([]*ratelimit.Middleware, others)
			for i := range all {
				all[i] = newMiddleware(b, memory, o, byIP("p", hourly))
			}
			for b.Loop() {
				m := newMiddleware(b, memory, o, byIP("p", hourly))
				if err := m.Close(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
			runtime.KeepAlive(all)
		})
	}
}
