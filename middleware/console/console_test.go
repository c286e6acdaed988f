// Tests of the console: explain, reset, grant, ban.

package console_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
	"github.com/penstock-go/penstock/middleware/overrides"
)

var client = console.Subject{Policy: "p", Key: "usr=42"}

// plans is a policy with a tier of another algorithm, and a candidate.
func plans() ratelimit.Policy {
	p, candidate := byUser("p", hourly), algorithms.FixedWindow(5, time.Hour)
	p.Candidate, p.Tiers = &candidate, map[string]algorithms.Limit{"gold": algorithms.SlidingWindowLog(100, time.Hour), "big": algorithms.TokenBucket(20, time.Hour)}
	return p
}

// spend makes n requests of the client in a tier.
func spend(t *testing.T, m *ratelimit.Middleware, n int, tier string) {
	t.Helper()
	for range n {
		if _, err := m.Check(asUser("42", tier)); err != nil {
			t.Fatal(err)
		}
	}
}

// remains explains a subject: per limit "reason=remaining", with a star at the limit in force.
func remains(t *testing.T, c *console.Console, s console.Subject) string {
	t.Helper()
	e, err := c.Explain(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, l := range e.Limits {
		text := string(l.Reason) + l.Tier + "=" + strconv.FormatInt(l.Remaining, 10)
		if l.InForce {
			text += "*"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func TestExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := overrides.NewMemory()
		m := newMiddleware(t, algorithms.NewMemory(nil), table, plans())
		c := console.New(m)
		spend(t, m, 3, "")
		spend(t, m, 2, "gold")
		want := func(s console.Subject, limits string, denied bool, reason console.Reason, clears time.Duration) {
			t.Helper()
			if got := remains(t, c, s); got != limits {
				t.Errorf("got %s, want %s", got, limits)
			}
			e, err := c.Explain(ctx, s)
			if err != nil || e.Denied != denied || e.Reason != reason || e.ClearsAfter != clears {
				t.Errorf("got denied %t by %v for %v, error %v, want %t by %v for %v", e.Denied, e.Reason, e.ClearsAfter, err, denied, reason, clears)
			}
		}
		gold := console.Subject{Policy: "p", Key: client.Key, Tier: "gold"}
		want(client, "default=7* tierbig=17 tiergold=98 candidate=2", false, console.ByDefault, 0)
		want(gold, "default=7 tierbig=17 tiergold=98* candidate=2", false, console.ByTier, 0)
		spend(t, m, 7, "")
		want(client, "default=0* tierbig=10 tiergold=98 candidate=0", true, console.ByDefault, 6*time.Minute)
		override(t, table, "p", client.Key, ratelimit.Override{Limit: algorithms.TokenBucket(30, time.Hour)})
		want(gold, "default=0 tierbig=10 tiergold=98 override=20* candidate=0", false, console.ByOverride, 0)
		override(t, table, "p", client.Key, ratelimit.Override{Limit: algorithms.Nobody()})
		want(client, "default=0 tierbig=10 tiergold=98 override=0* candidate=0", true, console.ByOverride, algorithms.Never)
		override(t, table, "p", client.Key, ratelimit.Override{Mode: ratelimit.ModeShadow})
		want(client, "default=0* tierbig=10 tiergold=98 candidate=0", false, console.ByDefault, 0)
		override(t, table, "p", client.Key, ratelimit.Override{Mode: ratelimit.ModeOff})
		want(client, "default=0 tierbig=10 tiergold=98 candidate=0", false, "", 0)
		override(t, table, "p", client.Key, ratelimit.Override{Mode: ratelimit.ModeBanned, Until: time.Now().Add(time.Minute)})
		want(client, "default=0 tierbig=10 tiergold=98 candidate=0", true, console.ByBan, time.Minute)
		time.Sleep(time.Minute)
		want(client, "default=0* tierbig=10 tiergold=98 candidate=0", true, console.ByDefault, 5*time.Minute)
	})
}

// Reset finds every state of a key. Grant credits the limit in force.
func TestResetAndGrant(t *testing.T) {
	table := overrides.NewMemory()
	m := newMiddleware(t, newStill(), table, plans())
	c := console.New(m)
	want := func(limits string) {
		t.Helper()
		if got := remains(t, c, client); got != limits {
			t.Errorf("got %s, want %s", got, limits)
		}
	}
	gold := console.Subject{Policy: "p", Key: client.Key, Tier: "gold"}
	spend(t, m, 4, "")
	spend(t, m, 4, "gold")
	if err := errors.Join(c.Grant(ctx, client, 2), c.Grant(ctx, gold, 1)); err != nil {
		t.Error(err)
	}
	want("default=8* tierbig=18 tiergold=97 candidate=1")
	if err := c.Grant(ctx, client, 1000); err != nil {
		t.Error(err)
	}
	want("default=10* tierbig=20 tiergold=97 candidate=1")
	override(t, table, "p", client.Key, ratelimit.Override{Limit: algorithms.LeakyBucket(100, time.Second)})
	spend(t, m, 4, "")
	spend(t, m, 2, "gold")
	want("default=10 tierbig=20 tiergold=97 override=94* candidate=1")
	if err := c.Reset(ctx, client); err != nil {
		t.Error(err)
	}
	want("default=10 tierbig=20 tiergold=100 override=100* candidate=5")
}

// constructors returns the names of the functions in package algorithms that make limits of algorithms.
func constructors(t *testing.T) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../algorithms/limit.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, declared := range file.Decls {
		f, ok := declared.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !f.Name.IsExported() || f.Name.Name == "LimitOf" || f.Type.Results == nil {
			continue
		}
		if result, ok := f.Type.Results.List[0].Type.(*ast.Ident); ok && result.Name == "Limit" {
			names = append(names, f.Name.Name)
		}
	}
	if len(names) < 9 {
		t.Fatalf("got %v, want at least 9 constructors", names)
	}
	return names
}

// Reset forgets units that were spent under a cleared override, or before an Update.
func TestResetOfPastLimits(t *testing.T) {
	limits := map[string]algorithms.Limit{
		"TokenBucket": hourly, "LeakyBucket": algorithms.LeakyBucket(10, time.Hour),
		"SlidingWindowCounter": algorithms.SlidingWindowCounter(10, time.Hour), "SlidingWindowLog": algorithms.SlidingWindowLog(10, time.Hour),
		"FixedWindow": algorithms.FixedWindow(10, time.Hour), "PerDay": algorithms.PerDay(10, nil), "PerMonth": algorithms.PerMonth(10, time.UTC),
		"Concurrent": algorithms.Concurrent(10, time.Hour), "Nobody": algorithms.Nobody(),
	}
	for _, name := range constructors(t) {
		l, known := limits[name]
		if !known {
			t.Errorf("no limit of algorithms.%s", name)
			continue
		}
		table := overrides.NewMemory()
		m := newMiddleware(t, newStill(), table, byUser("p", hourly))
		c := console.New(m)
		override(t, table, "p", client.Key, ratelimit.Override{Limit: l})
		spend(t, m, 3, "")
		if err := errors.Join(table.Clear(ctx, "p", client.Key), c.Reset(ctx, client)); err != nil {
			t.Error(err)
		}
		override(t, table, "p", client.Key, ratelimit.Override{Limit: l})
		e, err := c.Explain(ctx, client)
		if got := e.Limits[len(e.Limits)-1]; err != nil || got.Limit != l || got.Remaining != l.Burst() {
			t.Errorf("%v: got %+v, error %v; want %d", l, got, err, l.Burst())
		}
		if err := errors.Join(table.Clear(ctx, "p", client.Key), m.Update(byUser("p", l))); err != nil {
			t.Fatal(err)
		}
		spend(t, m, 3, "")
		if err := errors.Join(m.Update(byUser("p", hourly)), c.Reset(ctx, client), m.Update(byUser("p", l))); err != nil {
			t.Fatal(err)
		}
		if got, want := remains(t, c, client), "default="+strconv.FormatInt(l.Burst(), 10)+"*"; got != want {
			t.Errorf("%v: got %s after Update, want %s", l, got, want)
		}
	}
}

// A candidate has a state of its own, even if its algorithm is the live limit's.
func TestResetOfACandidate(t *testing.T) {
	p, candidate := byUser("p", hourly), algorithms.TokenBucket(5, time.Hour)
	p.Candidate = &candidate
	m := newMiddleware(t, newStill(), nil, p)
	c := console.New(m)
	spend(t, m, 3, "")
	if err := c.Reset(ctx, client); err != nil {
		t.Error(err)
	}
	if got := remains(t, c, client); got != "default=10* candidate=5" {
		t.Errorf("got %s, want both full", got)
	}
}

func TestBanAndUnban(t *testing.T) {
	table := overrides.NewMemory()
	shadow := byUser("dark", hourly)
	shadow.Shadow = true
	m := newMiddleware(t, newStill(), table, plans(), shadow)
	c := console.New(m)
	status := func(want int) {
		t.Helper()
		if v, err := m.Check(asUser("42", "")); err != nil || v.Status != want {
			t.Errorf("got %d, error %v, want %d", v.Status, err, want)
		}
	}
	if err := c.Ban(ctx, client, time.Time{}); err != nil {
		t.Error(err)
	}
	status(429)
	if err := errors.Join(c.Unban(ctx, client), c.Unban(ctx, client)); err != nil {
		t.Error(err)
	}
	status(0)
	override(t, table, "p", client.Key, ratelimit.Override{Mode: ratelimit.ModeShadow})
	if err := c.Unban(ctx, client); !errors.Is(err, console.ErrNotFound) {
		t.Errorf("got error %v, want ErrNotFound, because another override stays", err)
	}
	if err := c.Ban(ctx, console.Subject{Policy: "dark", Key: client.Key}, time.Time{}); !errors.Is(err, console.ErrUneditable) {
		t.Errorf("got error %v of a shadow, want ErrUneditable", err)
	}
}

// A shadow policy denies nothing, whatever the override says.
func TestExplainOfAShadow(t *testing.T) {
	table, p := overrides.NewMemory(), byUser("p", algorithms.TokenBucket(1, time.Hour))
	p.Shadow = true
	m := newMiddleware(t, newStill(), table, p)
	spend(t, m, 2, "")
	for _, mode := range []ratelimit.Mode{ratelimit.ModeOn, ratelimit.ModeShadow, ratelimit.ModeBanned} {
		override(t, table, "p", client.Key, ratelimit.Override{Mode: mode})
		if e, err := console.New(m).Explain(ctx, client); err != nil || e.Denied || e.Reason != console.ByDefault || e.Limits[0].Remaining != 0 {
			t.Errorf("mode %q: got %+v, error %v, want it admitted", mode, e, err)
		}
	}
}

// Explain shows the ban of a repeat offender, and Unban lifts it, also without a table of overrides.
func TestRepeatOffender(t *testing.T) {
	for name, table := range map[string]ratelimit.Overrides{"no table": nil, "table": overrides.NewMemory()} {
		p := byUser("p", algorithms.TokenBucket(1, time.Hour))
		p.Ban = &ratelimit.Ban{Denials: 2, Within: time.Hour, For: 10 * time.Hour}
		m := newMiddleware(t, newStill(), table, p)
		c := console.New(m)
		spend(t, m, 3, "")
		redistest.UntilEmpty(t, "the offender is banned", func() string {
			if e, err := c.Explain(ctx, client); err != nil || !e.Denied || e.Reason != console.ByBan || e.ClearsAfter != 10*time.Hour {
				return fmt.Sprintf("got %+v, error %v", e, err)
			}
			return ""
		})
		if err := c.Unban(ctx, client); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if e, err := c.Explain(ctx, client); err != nil || e.Reason != console.ByDefault {
			t.Errorf("%s: got %+v, error %v, want no ban", name, e, err)
		}
	}
}

func TestErrors(t *testing.T) {
	fixed := console.New(newMiddleware(t, newStill(), readOnly{}, plans()))
	down := console.New(newMiddleware(t, broken{algorithms.ErrUnavailable}, nil, plans()))
	c := console.New(newMiddleware(t, newStill(), nil, plans()))
	_, noPolicy := c.Explain(ctx, console.Subject{Policy: "q", Key: "usr=1"})
	_, noTier := c.Explain(ctx, console.Subject{Policy: "p", Key: "usr=1", Tier: "silver"})
	_, noKey := c.Explain(ctx, console.Subject{Policy: "p"})
	_, noLimiter := down.Explain(ctx, client)
	for _, tt := range []struct {
		name      string
		got, want error
	}{
		{"no such policy", noPolicy, console.ErrNotFound},
		{"no such tier", noTier, console.ErrNotFound},
		{"no key", noKey, algorithms.ErrInvalid},
		{"no limiter", noLimiter, algorithms.ErrUnavailable},
		{"reset without limiter", down.Reset(ctx, client), algorithms.ErrUnavailable},
		{"reset of no policy", c.Reset(ctx, console.Subject{Policy: "q", Key: "usr=1"}), console.ErrNotFound},
		{"reset of everyone", c.Reset(ctx, console.Subject{Policy: "p", Key: "*"}), algorithms.ErrInvalid},
		{"grant of nothing", c.Grant(ctx, client, 0), algorithms.ErrInvalid},
		{"grant of no policy", c.Grant(ctx, console.Subject{Policy: "q", Key: "usr=1"}, 1), console.ErrNotFound},
		{"ban without overrides", c.Ban(ctx, client, time.Time{}), console.ErrUneditable},
		{"ban in a table that is read-only", fixed.Ban(ctx, client, time.Time{}), console.ErrUneditable},
		{"unban without overrides", c.Unban(ctx, client), console.ErrUneditable},
		{"unban of no policy", c.Unban(ctx, console.Subject{Policy: "q", Key: "usr=1"}), console.ErrNotFound},
	} {
		if !errors.Is(tt.got, tt.want) {
			t.Errorf("%s: got error %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

// A grant needs no tier, because it cuts nothing: a customer of any plan receives the units.
func TestGrantWithoutTheTier(t *testing.T) {
	hour := func(l func(int64, time.Duration) algorithms.Limit, n int64) algorithms.Limit { return l(n, time.Hour) }
	for name, limit := range map[string]func(int64, time.Duration) algorithms.Limit{
		"token bucket": algorithms.TokenBucket, "fixed window": algorithms.FixedWindow, "counter": algorithms.SlidingWindowCounter,
		"log": algorithms.SlidingWindowLog,
	} {
		t.Run(name, func(t *testing.T) {
			p := plans()
			p.Candidate, p.Limit, p.Tiers = nil, hour(limit, 100), map[string]algorithms.Limit{"gold": hour(limit, 5000)}
			m := newMiddleware(t, newStill(), nil, p)
			c := console.New(m)
			spend(t, m, 3000, "gold")
			if err := c.Grant(ctx, client, 10); err != nil {
				t.Fatal(err)
			}
			v, err := m.Check(asUser("42", "gold"))
			if err != nil || v.Policies[0].Decision.Remaining != 2009 {
				t.Errorf("got %d left, %v, want 2009: 10 of 3000 units are back, and the request took one", v.Policies[0].Decision.Remaining, err)
			}
		})
	}
}
