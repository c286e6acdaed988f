// Tests of overrides: limits, modes and bans of single keys.

package tests

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// override sets an override, which is valid.
func override(t testing.TB, m *overrides.Memory, policy, key string, o ratelimit.Override) {
	t.Helper()
	if err := m.Set(context.Background(), policy, key, o); err != nil {
		t.Fatal(err)
	}
}

// An overridden limit acts on the next request and on used units, and headers advertise it.
func TestOverriddenLimit(t *testing.T) {
	table := overrides.NewMemory()
	m := newMiddleware(t, newStill(t), &ratelimit.Options{Overrides: table, Headers: headers.Draft}, byIP("p", hourly))
	h := m.Handler(ok)
	want := func(ip string, status int, said ...string) {
		t.Helper()
		w := record(h, from(ip))
		if got := limits(w.Header()); w.Code != status || got != text(said...) {
			t.Errorf("got %d\n%s, want %d\n%s", w.Code, got, status, text(said...))
		}
	}
	want("192.0.2.1", 200, `Ratelimit: "p";r=9;t=3240`, `Ratelimit-Policy: "p";q=10;w=3600`)
	override(t, table, "p", "ip=192.0.2.1", ratelimit.Override{Limit: algorithms.TokenBucket(100, time.Hour)})
	want("192.0.2.1", 200, `Ratelimit: "p";r=98;t=3528`, `Ratelimit-Policy: "p";q=100;w=3600`)
	want("192.0.2.2", 200, `Ratelimit: "p";r=9;t=3240`, `Ratelimit-Policy: "p";q=10;w=3600`)
	override(t, table, "p", ratelimit.Everyone, ratelimit.Override{Limit: algorithms.Nobody()})
	want("192.0.2.1", 200, `Ratelimit: "p";r=97;t=3492`, `Ratelimit-Policy: "p";q=100;w=3600`)
	want("192.0.2.2", 403, `Ratelimit: "p";r=0`, `Ratelimit-Policy: "p";q=0`)
	override(t, table, "p", "ip=192.0.2.2", ratelimit.Override{})
	want("192.0.2.2", 200, `Ratelimit: "p";r=8;t=2880`, `Ratelimit-Policy: "p";q=10;w=3600`)
	v, err := m.Check(from("192.0.2.1"))
	if p := v.Policies[0]; err != nil || !p.Override || p.Banned || p.Limit != algorithms.TokenBucket(100, time.Hour) {
		t.Errorf("got %+v, error %v, want the override's limit", p, err)
	}
}

// However many limits there are, each request meets its own, and its own quota.
func TestManyOverriddenLimits(t *testing.T) {
	table := overrides.NewMemory()
	m := newMiddleware(t, newStill(t), &ratelimit.Options{Overrides: table, Headers: headers.Draft}, byIP("p", hourly))
	h := m.Handler(ok)
	for i := range 500 {
		override(t, table, "p", fmt.Sprintf("ip=192.0.%d.%d", i/250, i%250), ratelimit.Override{Limit: algorithms.TokenBucket(int64(i+1), time.Hour)})
	}
	for i := range 1000 {
		i %= 500
		w := record(h, from(fmt.Sprintf("192.0.%d.%d", i/250, i%250)))
		if got, want := w.Header().Get("RateLimit-Policy"), fmt.Sprintf(`"p";q=%d;w=3600`, i+1); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}

// A policy that is off is not asked, needs no key, and charges nothing; in shadow it is asked and denies nothing.
func TestOverriddenMode(t *testing.T) {
	tenant := ratelimit.Policy{Name: "tenant", Key: keyfunc.Header("X-Tenant"), Limit: algorithms.TokenBucket(1, time.Hour), Fail: algorithms.FailClosed}
	for _, tt := range []struct {
		policy, key string
		mode        ratelimit.Mode
		tenant      string
		status      int
		asked       string
	}{
		{"tenant", "hdr.x-tenant=a", "", "a", 429, "ip:ip=192.0.2.1 tenant:hdr.x-tenant=a"},
		{"tenant", "hdr.x-tenant=a", ratelimit.ModeOff, "a", 200, "ip:ip=192.0.2.1"},
		{"tenant", "hdr.x-tenant=a", ratelimit.ModeShadow, "a", 200, "ip:ip=192.0.2.1 tenant:hdr.x-tenant=a"},
		{"tenant", "hdr.x-tenant=b", ratelimit.ModeOff, "a", 429, "ip:ip=192.0.2.1 tenant:hdr.x-tenant=a"},
		{"tenant", "hdr.x-tenant=a", ratelimit.ModeOff, "", 401, ""},
		{"tenant", "*", ratelimit.ModeOff, "", 200, "ip:ip=192.0.2.1"},
		{"tenant", "*", ratelimit.ModeShadow, "", 200, "ip:ip=192.0.2.1"},
		{"*", "*", ratelimit.ModeShadow, "a", 200, "ip:ip=192.0.2.1 tenant:hdr.x-tenant=a"},
		{"*", "*", ratelimit.ModeOff, "a", 200, ""},
		{"*", "*", ratelimit.ModeOff, "", 200, ""},
	} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			table, store := overrides.NewMemory(), &spy{Limiter: newStill(t)}
			h := newMiddleware(t, store, &ratelimit.Options{Overrides: table}, byIP("ip", hourly), tenant).Handler(ok)
			record(h, with(from("192.0.2.9"), "X-Tenant", "a"))
			store.asked()
			override(t, table, tt.policy, tt.key, ratelimit.Override{Mode: tt.mode})
			r := from("192.0.2.1")
			if tt.tenant != "" {
				with(r, "X-Tenant", tt.tenant)
			}
			w := record(h, r)
			if got := store.asked(); w.Code != tt.status || got != tt.asked {
				t.Errorf("got %d and asked %q, want %d and %q", w.Code, got, tt.status, tt.asked)
			}
			advertised := strings.Contains(tt.asked, "tenant") && tt.mode != ratelimit.ModeShadow
			if said := w.Header().Get("RateLimit"); strings.Contains(said, "tenant") != advertised {
				t.Errorf("got RateLimit %q, want the policy in it: %t", said, advertised)
			}
		})
	}
}

// A shadow denies nothing, also when no limiter can decide and its policy would fail closed.
func TestShadowedPolicyFailsOpen(t *testing.T) {
	table, seen := overrides.NewMemory(), new(spy)
	seen.Limiter = broken(errors.New("down"))
	closed := byIP("p", hourly)
	closed.Fail = algorithms.FailClosed
	m := newMiddleware(t, seen, &ratelimit.Options{Overrides: table, Logger: quiet}, closed)
	if v, err := m.Check(from("192.0.2.1")); v.Status != http.StatusServiceUnavailable || err == nil {
		t.Errorf("got %+v, error %v, want 503", v, err)
	}
	override(t, table, "p", "ip=192.0.2.1", ratelimit.Override{Mode: ratelimit.ModeShadow})
	v, err := m.Check(from("192.0.2.1"))
	if !v.Allowed || err != nil || !v.Policies[0].Shadow || !v.Policies[0].Override {
		t.Errorf("got %+v, error %v, want it allowed, by a shadow", v, err)
	}
	if c := seen.calls[1][0]; c.Op != algorithms.Trial || c.Fail != algorithms.FailLocal {
		t.Errorf("got %v that fails %v, want a trial that fails local", c.Op, c.Fail)
	}
}

// A ban is answered without the limiter, until it ends.
func TestBan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, store := overrides.NewMemory(), &spy{Limiter: newMemory(t)}
		capacity := forAll("all", hourly)
		capacity.Capacity = true
		m := newMiddleware(t, store, &ratelimit.Options{Overrides: table, Headers: headers.Draft}, capacity, byIP("ip", hourly),
			ratelimit.Policy{Name: "tenant", Key: keyfunc.Header("X-Tenant"), Limit: hourly})
		h := m.Handler(ok)
		tenant := func(name string) *http.Request { return with(from("192.0.2.1"), "X-Tenant", name) }
		override(t, table, "tenant", "hdr.x-tenant=a", ratelimit.Override{Mode: ratelimit.ModeBanned, Until: time.Now().Add(90 * time.Second)})
		w := record(h, tenant("a"))
		const want = `{"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected","title":"Abnormal Usage Detected","status":429,"violated-policies":["tenant"]}`
		if w.Code != 429 || w.Body.String() != want || w.Header().Get("Retry-After") != "90" || store.asked() != "" {
			t.Errorf("got %d %s %s, want 429, %s and Retry-After 90, and nobody asked", w.Code, w.Body, dump(w.Header()), want)
		}
		v, err := m.Check(tenant("a"))
		if len(v.Policies) != 1 || !v.Policies[0].Banned || v.Policies[0].Name != "tenant" || v.RetryAfter != 90*time.Second || err != nil {
			t.Errorf("got %+v, error %v, want the ban", v, err)
		}
		if w := record(h, tenant("b")); w.Code != 200 || store.asked() == "" {
			t.Errorf("got %d for another key, want 200", w.Code)
		}
		if w := record(h, from("192.0.2.1")); w.Code != 401 {
			t.Errorf("got %d without identity, want 401", w.Code)
		}
		override(t, table, "ip", "ip=192.0.2.1", ratelimit.Override{Mode: ratelimit.ModeBanned})
		w = record(h, tenant("a"))
		if w.Code != 403 || !strings.Contains(w.Body.String(), `["ip","tenant"]`) || w.Header().Get("Retry-After") != "" {
			t.Errorf("got %d %s %s, want two bans, one of them for ever", w.Code, w.Body, dump(w.Header()))
		}
		if err := table.Clear(context.Background(), "ip", "ip=192.0.2.1"); err != nil {
			t.Error(err)
		}
		time.Sleep(90 * time.Second)
		if w := record(h, tenant("a")); w.Code != 200 {
			t.Errorf("got %d when the ban has ended, want 200", w.Code)
		}
		override(t, table, "all", "const=all", ratelimit.Override{Mode: ratelimit.ModeBanned})
		if w := record(h, tenant("a")); w.Code != 403 || strings.Contains(w.Body.String(), "violated") {
			t.Errorf("got %d %s, want 403 for a ban of what is private capacity", w.Code, w.Body)
		}
	})
}

// Overrides of the guesser's address: a ban answers, and none makes a guess pass.
func TestOverrideOfUnknownKeys(t *testing.T) {
	keys := ratelimit.Policy{Name: "keys", Key: apiKey, Limit: algorithms.TokenBucket(1, time.Hour)}
	for _, tt := range []struct {
		policy, key string
		override    ratelimit.Override
		want        [2]int
	}{
		{"none", "ip=192.0.2.1", ratelimit.Override{}, [2]int{401, 401}},
		{"keys", "ip=192.0.2.1", ratelimit.Override{Limit: hourly}, [2]int{401, 401}},
		{"keys", "ip=192.0.2.1", ratelimit.Override{Mode: ratelimit.ModeShadow}, [2]int{401, 401}},
		{"keys", "ip=192.0.2.1", ratelimit.Override{Mode: ratelimit.ModeOff}, [2]int{401, 401}},
		{"keys", "ip=192.0.2.1", ratelimit.Override{Mode: ratelimit.ModeBanned}, [2]int{403, 403}},
		{"ip", "ip=192.0.2.1", ratelimit.Override{Mode: ratelimit.ModeBanned}, [2]int{403, 403}},
		{"keys", "*", ratelimit.Override{Mode: ratelimit.ModeOff}, [2]int{200, 200}},
	} {
		table := overrides.NewMemory()
		override(t, table, tt.policy, tt.key, tt.override)
		h := newMiddleware(t, newStill(t), &ratelimit.Options{Overrides: table}, byIP("ip", hourly), keys).Handler(ok)
		for i, want := range tt.want {
			if w := record(h, with(from("192.0.2.1"), "X-API-Key", "guess")); w.Code != want {
				t.Errorf("%s %s %+v: try %d: got %d, want %d", tt.policy, tt.key, tt.override, i, w.Code, want)
			}
		}
	}
}

// A candidate runs only beside the limit that it may replace; tiers give way, and shadows stay shadows.
func TestOverrideBesideOtherLimits(t *testing.T) {
	table, store := overrides.NewMemory(), &spy{Limiter: newStill(t)}
	candidate, gold := algorithms.TokenBucket(3, time.Hour), algorithms.TokenBucket(500, time.Hour)
	p, shadow := byPlan("p", hourly, map[string]algorithms.Limit{"gold": gold}), byIP("dark", algorithms.Nobody())
	p.Candidate = &candidate
	shadow.Shadow = true
	m := newMiddleware(t, store, &ratelimit.Options{Overrides: table}, p, shadow)
	for _, tt := range []struct {
		override ratelimit.Override
		tier     string
		asked    string
		limit    algorithms.Limit
	}{
		{ratelimit.Override{}, "", "p p~candidate dark", hourly},
		{ratelimit.Override{}, "gold", "p dark", gold},
		{ratelimit.Override{Limit: candidate}, "", "p dark", candidate},
		{ratelimit.Override{Limit: candidate}, "gold", "p dark", candidate},
		{ratelimit.Override{Mode: ratelimit.ModeShadow}, "", "p dark", hourly},
	} {
		override(t, table, "p", "usr=me", tt.override)
		override(t, table, "dark", "ip=192.0.2.1", ratelimit.Override{Mode: ratelimit.ModeBanned})
		v, err := m.Check(onPlan(from("192.0.2.1"), tt.tier))
		asked := strings.NewReplacer(":ip=192.0.2.1", "", ":usr=me", "").Replace(store.asked())
		if err != nil || asked != tt.asked || v.Policies[0].Limit != tt.limit || v.Policies[0].Tier != tt.tier || !v.Policies[1].Shadow {
			t.Errorf("%+v: got %+v, error %v, asked %q, want %v, asked %q", tt, v, err, asked, tt.limit, tt.asked)
		}
	}
}

// found is an Overrides without validation.
type found ratelimit.Override

func (f found) Find(string, string) (ratelimit.Override, bool) { return ratelimit.Override(f), true }

// A limit that is invalid leaves the policy's own in force.
func TestInvalidOverride(t *testing.T) {
	m := newMiddleware(t, newStill(t), &ratelimit.Options{Logger: quiet, Overrides: found{Limit: algorithms.FixedWindow(math.MaxInt64, -1)}}, byIP("p", hourly))
	if v, err := m.Check(from("192.0.2.1")); err != nil || !v.Allowed || v.Policies[0].Limit != hourly {
		t.Errorf("got %+v, error %v, want the policy's limit", v, err)
	}
}

// TestOverridesThatDoNotGoTogether with the limits of other policies, or with each other, are ignored and logged, like
// invalid overrides. The console refuses them if the policies rule them out.
func TestOverridesThatDoNotGoTogether(t *testing.T) {
	streams := algorithms.Concurrent(2, time.Minute)
	for _, tt := range []struct {
		name     string
		others   []ratelimit.Policy
		override algorithms.Limit
		beside   algorithms.Limit // an override of the policy before; zero: none
		want     algorithms.Limit
		refused  bool // by the console, which knows the policies
	}{
		{"hold beside a queue", []ratelimit.Policy{byIP("queue", perSecond)}, streams, algorithms.Limit{}, hourly, true},
		{"queue beside a hold", []ratelimit.Policy{byIP("streams", streams)}, perSecond, algorithms.Limit{}, hourly, true},
		{"hold beside an overriding queue", []ratelimit.Policy{byIP("other", daily)}, streams, perSecond, hourly, false},
		{"queue beside an overriding hold", []ratelimit.Policy{byIP("other", daily)}, perSecond, streams, hourly, false},
		{"two queues", []ratelimit.Policy{byIP("queue", perSecond)}, perSecond, algorithms.Limit{}, perSecond, false},
		{"two holds", []ratelimit.Policy{byIP("streams", streams)}, streams, algorithms.Limit{}, streams, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table, log := overrides.NewMemory(), new(logRecords)
				m := newMiddleware(t, newStill(t), &ratelimit.Options{Overrides: table, Logger: log.logger()}, append(tt.others, byIP("p", hourly))...)
				override(t, table, "p", "ip=192.0.2.1", ratelimit.Override{Limit: tt.override})
				ignored := 0
				if tt.want == hourly {
					ignored = 1
				}
				if tt.beside != (algorithms.Limit{}) {
					override(t, table, "other", "ip=192.0.2.1", ratelimit.Override{Limit: tt.beside})
				}
				inForce := func() algorithms.Limit {
					v, _ := m.Check(from("192.0.2.1")) // an error if a limit is Concurrent
					return v.Policies[1].Limit
				}
				for range 2 {
					if got := inForce(); got != tt.want {
						t.Errorf("got %v in force, want %v", got, tt.want)
					}
				}
				if got := strings.Count(strings.Join(log.lines(), "\n"), "invalid limit of an override"); got != ignored {
					t.Errorf("got %d lines in the log, want %d:\n%s", got, ignored, log.lines())
				}
				s := ratelimit.Must(console.New(m).Who(t.Context(), console.Subject{Policy: "p", Key: "ip=192.0.2.1"}))[0]
				if knows := s.Limits[0].Reason == console.ByOverride; knows == tt.refused {
					t.Errorf("got %v, want it to know whether the override is in force", s)
				}
				if tt.beside == (algorithms.Limit{}) {
					return
				}
				if err := table.Clear(context.Background(), "other", "ip=192.0.2.1"); err != nil {
					t.Fatal(err)
				}
				if got := inForce(); got != tt.override {
					t.Errorf("got %v in force without the other override, want %v", got, tt.override)
				}
			})
		})
	}
}
