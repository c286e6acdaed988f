// Tests of the figures on the page.

package statuspage_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
	"github.com/penstock-go/penstock/middleware/statuspage"
)

// TestCounts: the page shows the requests of the last minute, by policy and outcome.
func TestCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, memory, table := statuspage.New(nil), algorithms.NewMemory(nil), overrides.NewMemory()
		live := byIP("live", algorithms.TokenBucket(3, time.Hour))
		shadow := byIP("shadow", algorithms.TokenBucket(1, time.Hour))
		shadow.Shadow = true
		keyed := ratelimit.Policy{
			Name: "keyed", Key: keyfunc.Header("X-Tenant"), Limit: hourly, Hidden: true,
			Cost: func(*http.Request) int64 { return 1 },
		}
		m := shownOn(t, page, memory, ratelimit.Options{Overrides: table, PlainKeys: true}, live, shadow)
		other := shownOn(t, page, memory, ratelimit.Options{}, keyed)
		for range 6 {
			record(m.Handler(ok), from("192.0.2.1"))
		}
		record(other.Handler(ok), from("192.0.2.1"))
		for key, o := range map[string]ratelimit.Override{
			"ip=192.0.2.2": {Mode: ratelimit.ModeOff},
			"ip=192.0.2.3": {Mode: ratelimit.ModeOff, Until: time.Now().Add(time.Second)},
		} {
			if err := table.Set(context.Background(), "live", key, o); err != nil {
				t.Fatal(err)
			}
		}
		if err := table.Set(context.Background(), "shadow", ratelimit.Everyone, ratelimit.Override{Mode: ratelimit.ModeOff}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)

		v := look(t, page)
		if v.Requests != 7 || v.Refused != 4 || v.WindowMS != 2000 || len(v.Policies) != 3 {
			t.Fatalf("got %d requests, %d refused, in %d ms, of %d policies", v.Requests, v.Refused, v.WindowMS, len(v.Policies))
		}
		for i, want := range []struct {
			name, modes string
			outcomes    map[string]uint64
		}{
			{"live", "[]", map[string]uint64{"allowed": 3, "denied": 3}},
			{"shadow", "[shadow]", map[string]uint64{"allowed": 1, "shadow_denied": 5}},
			{"keyed", "[hidden cost]", map[string]uint64{"key_error": 1}},
		} {
			p := v.Policies[i]
			if p.Name != want.name || fmt.Sprint(p.Modes) != want.modes || !maps.Equal(p.Outcomes, want.outcomes) {
				t.Errorf("got %s %v %v, want %v", p.Name, p.Modes, p.Outcomes, want)
			}
		}
		if p := v.Policies[0]; p.Overrides != 1 {
			t.Errorf("got %+v, want one override in force", p)
		}
		if p := v.Policies[1]; p.Overrides != 1 || p.Everyone == nil || p.Everyone.Mode != ratelimit.ModeOff {
			t.Errorf("got %+v, want an override of everyone", p)
		}
		if c := v.Clients; len(c) != 1 || len(c[0].Keys) != 2 || c[0].Keys[0].Key != "ip=192.0.2.1" || c[0].Keys[0].Denied != 3 || c[0].Keys[1].Policy != "shadow" {
			t.Errorf("got %+v, want one client, denied by both policies", c)
		}
		if d := v.Decisions[1]; d.Source != "local" || d.Count != 6 || v.Decisions[0].Count+v.Decisions[2].Count != 0 {
			t.Errorf("got %+v, want 6 local decisions", v.Decisions)
		}
		time.Sleep(70 * time.Second)
		if v := look(t, page); v.Requests != 0 || v.Decisions[1].Count != 0 || len(v.Policies[0].Outcomes) != 0 {
			t.Errorf("a minute later: got %+v, want no requests", v)
		}
	})
}

// TestDurations: the median and the 99th percentile are right to within a sixteenth.
func TestDurations(t *testing.T) {
	page := statuspage.New(nil)
	for i := range 100 {
		page.Observe(context.Background(), ratelimit.Event{
			Kind: ratelimit.Decided, Elapsed: time.Duration(i+1) * ms,
			Verdict: ratelimit.Verdict{Allowed: true, Policies: []ratelimit.PolicyVerdict{{
				Name: "p", Decision: algorithms.Decision{Allowed: true, Source: algorithms.Shared},
			}}},
		})
	}
	d := look(t, page).Decisions[0]
	if d.Source != "shared" || d.Count != 100 || (d.P50-50*ms).Abs() > 50*ms/16 || (d.P99-99*ms).Abs() > 99*ms/16 {
		t.Errorf("got %+v, want a median of 50ms and a p99 of 99ms", d)
	}
}

// TestUnknownSource: a limiter of another module may report a source that does not exist.
func TestUnknownSource(t *testing.T) {
	page := statuspage.New(nil)
	odd := limiterFunc(func(_ context.Context, checks []algorithms.Check) error {
		checks[0].Decision = algorithms.Decision{Allowed: true, Source: 9}
		return nil
	})
	m := shownOn(t, page, odd, ratelimit.Options{}, byIP("p", hourly))
	record(m.Handler(ok), from("192.0.2.1"))
	if v := look(t, page); v.Requests != 1 || v.Refused != 0 {
		t.Errorf("got %+v, want one request", v)
	}
}

// TestRedis: the page shows an open circuit.
func TestRedis(t *testing.T) {
	page := statuspage.New(nil)
	down := redistest.Script(nil, redistest.Fail(errors.New("down")))
	limiter, err := shared.New(down, &shared.Options{Instances: 3, Deadline: ms, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close()
	m := shownOn(t, page, limiter, ratelimit.Options{}, byIP("p", hourly))
	html := func() string { return record(page, httptest.NewRequest("GET", "/", nil)).Body.String() }
	l := look(t, page).Limiters
	if len(l) != 1 || l[0].Name != "redis" || l[0].Kind != "shared" || l[0].Breaker != "closed" || l[0].Instances != 3 {
		t.Errorf("got %+v, want one limiter of 3 instances, whose circuit is closed", l)
	}
	if page := html(); !strings.Contains(page, "; Redis has been connected since the start") {
		t.Errorf("Redis is not shown as connected:\n%s", page)
	}
	for limiter.Stats().Fallback.Open == 0 {
		record(m.Handler(ok), from("192.0.2.1"))
	}
	page.Outdate()
	if page := html(); !strings.Contains(page, "<title>Rate limits: Redis unavailable") || !strings.Contains(page, `<p class="badge bad">Redis unavailable`) {
		t.Errorf("Redis is not shown as unavailable:\n%s", page)
	}
	if l := look(t, page).Limiters[0]; l.Breaker != "open" {
		t.Errorf("got %+v, want an open circuit", l)
	}
}

// TestFindings: equal findings of several policies are one problem.
func TestFindings(t *testing.T) {
	page := statuspage.New(nil)
	dear := func(name string) ratelimit.Policy {
		p := byIP(name, algorithms.TokenBucket(60, time.Minute).WithBurst(10))
		p.Cost = func(r *http.Request) int64 { return int64(r.ContentLength) }
		return p
	}
	for _, name := range []string{"export", "import"} {
		m := shownOn(t, page, algorithms.NewMemory(nil), ratelimit.Options{}, dear(name))
		for _, cost := range []int64{1, 25, 1} {
			r := from("192.0.2.1")
			r.ContentLength = cost
			record(m.Handler(ok), r)
		}
	}
	if v := look(t, page); len(v.Findings) != 2 || v.Findings[0].Code != "PS107" || v.Findings[1].Policy != "import" {
		t.Errorf("got %+v, want PS107 of both policies", v.Findings)
	}
	html := record(page, httptest.NewRequest("GET", "/", nil)).Body.String()
	if !strings.Contains(html, ">1 configuration problem <") || strings.Count(html, "<code>PS107</code>") != 1 {
		t.Errorf("the page does not show one problem:\n%s", html)
	}
}

// decidedOf returns the event of a request that n policies allowed, and the page that shows them.
func decidedOf(t testing.TB, n int) (*statuspage.Page, ratelimit.Event) {
	page, e := statuspage.New(nil), ratelimit.Event{Kind: ratelimit.Decided, Verdict: ratelimit.Verdict{Allowed: true}, Elapsed: ms}
	var policies []ratelimit.Policy
	for i := range n {
		p := byIP(fmt.Sprint("policy-", i), hourly)
		policies = append(policies, p)
		e.Verdict.Policies = append(e.Verdict.Policies, ratelimit.PolicyVerdict{
			Name: p.Name, Decision: algorithms.Decision{Allowed: true, Source: algorithms.Shared},
		})
	}
	e.Middleware = shownOn(t, page, algorithms.NewMemory(nil), ratelimit.Options{}, policies...)
	return page, e
}

func TestObserveDoesNotAllocate(t *testing.T) {
	page, e := decidedOf(t, 3)
	if got := testing.AllocsPerRun(1000, func() { page.Observe(context.Background(), e) }); got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
}

func BenchmarkObserve(b *testing.B) {
	for _, n := range []int{1, 3} {
		page, e := decidedOf(b, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				page.Observe(context.Background(), e)
			}
		})
	}
}

// decidedBy returns the event of a request that a source decided in a time.
func decidedBy(source algorithms.Source, took time.Duration) ratelimit.Event {
	return ratelimit.Event{
		Kind: ratelimit.Decided, Elapsed: took,
		Verdict: ratelimit.Verdict{Allowed: true, Policies: []ratelimit.PolicyVerdict{{
			Name: "p", Decision: algorithms.Decision{Allowed: true, Source: source},
		}}},
	}
}

// TestLatencyOfAll: the latency covers all decisions, so a few slow ones of a rare source do not become the headline.
func TestLatencyOfAll(t *testing.T) {
	page := statuspage.New(nil)
	for i := range 1000 {
		page.Observe(context.Background(), decidedBy(algorithms.Shared, ms))
		if i%250 == 0 {
			page.Observe(context.Background(), decidedBy(algorithms.Local, 200*ms))
		}
	}
	v := look(t, page)
	if l := v.Latency; l.Count != 1004 || (l.P50-ms).Abs() > ms/16 || (l.P99-ms).Abs() > ms/16 {
		t.Errorf("got %+v, want a median and a p99 of 1 ms of 1004 decisions", l)
	}
	if d := v.Decisions[1]; d.Source != "local" || d.Count != 4 || d.P50 < 187*ms {
		t.Errorf("got %+v, want the 4 slow local decisions by themselves", d)
	}
}

// TestDenied: bans and refusals by a policy that fails closed are denied; shadow denials and unknown keys are not.
func TestDenied(t *testing.T) {
	page, table := statuspage.New(nil), overrides.NewMemory()
	limiter, err := shared.New(redistest.Script(nil, redistest.Fail(errors.New("down"))), &shared.Options{Deadline: ms, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close()
	closed, shadow, banned := byIP("closed", hourly), byIP("shadow", algorithms.Nobody()), byIP("banned", hourly)
	closed.Fail, shadow.Shadow = algorithms.FailClosed, true
	for _, p := range []ratelimit.Policy{closed, shadow, banned} {
		m := shownOn(t, page, limiter, ratelimit.Options{Overrides: table}, p)
		if err := table.Set(t.Context(), "banned", "ip=192.0.2.1", ratelimit.Override{Mode: ratelimit.ModeBanned}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			record(m.Handler(ok), from("192.0.2.1"))
		}
	}
	v := look(t, page)
	want := map[string]string{"closed": "map[failed_closed:3]", "shadow": "map[shadow_denied:3]", "banned": "map[banned:3]"}
	for _, p := range v.Policies {
		if got := fmt.Sprint(p.Outcomes); got != want[p.Name] {
			t.Errorf("%s: got %s, want %s", p.Name, got, want[p.Name])
		}
	}
	if v.Requests != 9 || v.Denied != 6 {
		t.Errorf("got %d of %d requests denied, want 6 of 9", v.Denied, v.Requests)
	}
}

// TestOverridesOfAllPolicies: a ban in all policies counts in the row of each that reads the table.
func TestOverridesOfAllPolicies(t *testing.T) {
	page, table := statuspage.New(nil), overrides.NewMemory()
	shownOn(t, page, algorithms.NewMemory(nil), ratelimit.Options{Overrides: table}, byIP("p", hourly), byIP("q", hourly))
	shownOn(t, page, algorithms.NewMemory(nil), ratelimit.Options{}, byIP("r", hourly)) // has no table
	for _, policy := range []string{overrides.All, "q"} {
		if err := table.Set(t.Context(), policy, "ip=192.0.2.1", ratelimit.Override{Mode: ratelimit.ModeBanned}); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range look(t, page).Policies {
		if want := map[string]int{"p": 1, "q": 2}[p.Name]; p.Overrides != want {
			t.Errorf("%s: got %d overrides, want %d", p.Name, p.Overrides, want)
		}
	}
}
