// Tests of the console: explain, reset, grant, ban.

package middleware_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/overrides"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

var client = ratelimit.Subject{Policy: "p", Key: "ip=192.0.2.1"}

// plans is a policy with a tier of another algorithm, and a candidate.
func plans() ratelimit.Policy {
	p, candidate := byIP("p", hourly), algorithms.FixedWindow(5, time.Hour)
	p.Candidate, p.Tiers = &candidate, map[string]algorithms.Limit{"gold": algorithms.SlidingWindowLog(100, time.Hour), "big": algorithms.TokenBucket(20, time.Hour)}
	p.Tier = func(r *http.Request) string { return r.Header.Get("Tier") }
	return p
}

// spend makes n requests of a tier.
func spend(t *testing.T, m *ratelimit.Middleware, n int, tier string) {
	t.Helper()
	for range n {
		if _, err := m.Check(with(from("192.0.2.1"), "Tier", tier)); err != nil {
			t.Fatal(err)
		}
	}
}

// remains explains what a subject has left: per limit "reason=remaining", a star at the one in force.
func remains(t *testing.T, c *ratelimit.Console, s ratelimit.Subject) string {
	t.Helper()
	e, err := c.Explain(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, l := range e.Limits {
		text := l.Reason.String() + l.Tier + "=" + strconv.FormatInt(l.Remaining, 10)
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
		m := newMiddleware(t, newMemory(t), &ratelimit.Options{Overrides: table}, plans())
		c := ratelimit.NewConsole(m)
		spend(t, m, 3, "")
		spend(t, m, 2, "gold")
		want := func(s ratelimit.Subject, limits string, denied bool, reason ratelimit.Reason, clears time.Duration) {
			t.Helper()
			if got := remains(t, c, s); got != limits {
				t.Errorf("got %s, want %s", got, limits)
			}
			e, err := c.Explain(context.Background(), s)
			if err != nil || e.Denied != denied || e.Reason != reason || e.ClearsAfter != clears {
				t.Errorf("got denied %t by %v for %v, error %v, want %t by %v for %v", e.Denied, e.Reason, e.ClearsAfter, err, denied, reason, clears)
			}
		}
		gold := ratelimit.Subject{Policy: "p", Key: client.Key, Tier: "gold"}
		want(client, "default=7* tierbig=17 tiergold=98 candidate=2", false, ratelimit.ByDefault, 0)
		want(gold, "default=7 tierbig=17 tiergold=98* candidate=2", false, ratelimit.ByTier, 0)
		spend(t, m, 7, "")
		want(client, "default=0* tierbig=10 tiergold=98 candidate=0", true, ratelimit.ByDefault, 6*time.Minute)
		override(t, table, "p", client.Key, overrides.Override{Limit: algorithms.TokenBucket(30, time.Hour)})
		want(gold, "default=0 tierbig=10 tiergold=98 override=20* candidate=0", false, ratelimit.ByOverride, 0)
		override(t, table, "p", client.Key, overrides.Override{Limit: algorithms.Nobody()})
		want(client, "default=0 tierbig=10 tiergold=98 override=0* candidate=0", true, ratelimit.ByOverride, algorithms.Never)
		override(t, table, "p", client.Key, overrides.Override{Mode: overrides.Shadow})
		want(client, "default=0* tierbig=10 tiergold=98 candidate=0", false, ratelimit.ByDefault, 0)
		override(t, table, "p", client.Key, overrides.Override{Mode: overrides.Off})
		want(client, "default=0 tierbig=10 tiergold=98 candidate=0", false, ratelimit.ByDefault, 0)
		override(t, table, "p", client.Key, overrides.Override{Mode: overrides.Banned, Until: time.Now().Add(time.Minute)})
		want(client, "default=0 tierbig=10 tiergold=98 candidate=0", true, ratelimit.ByBan, time.Minute)
		time.Sleep(time.Minute)
		want(client, "default=0* tierbig=10 tiergold=98 candidate=0", true, ratelimit.ByDefault, 5*time.Minute)
	})
}

// Reset finds all places where a key may have used something; Grant gives units of the limit in force.
func TestResetAndGrant(t *testing.T) {
	ctx, table := context.Background(), overrides.NewMemory()
	m := newMiddleware(t, newStill(t), &ratelimit.Options{Overrides: table}, plans())
	c := ratelimit.NewConsole(m)
	want := func(limits string) {
		t.Helper()
		if got := remains(t, c, client); got != limits {
			t.Errorf("got %s, want %s", got, limits)
		}
	}
	gold := ratelimit.Subject{Policy: "p", Key: client.Key, Tier: "gold"}
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
	override(t, table, "p", client.Key, overrides.Override{Limit: algorithms.LeakyBucket(100, time.Second)})
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
	file, err := parser.ParseFile(token.NewFileSet(), "../algorithms/limit.go", nil, 0)
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

// TestResetOfWhatIsPast: units spent under an override that is gone, or before an Update, are forgotten, too.
func TestResetOfWhatIsPast(t *testing.T) {
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
		m := newMiddleware(t, newStill(t), &ratelimit.Options{Overrides: table, Logger: quiet}, byIP("p", hourly))
		c := ratelimit.NewConsole(m)
		override(t, table, "p", client.Key, overrides.Override{Limit: l})
		spend(t, m, 3, "")
		if err := errors.Join(table.Clear(context.Background(), "p", client.Key), c.Reset(context.Background(), client)); err != nil {
			t.Error(err)
		}
		override(t, table, "p", client.Key, overrides.Override{Limit: l})
		e, err := c.Explain(context.Background(), client)
		if got := e.Limits[len(e.Limits)-1]; err != nil || got.Limit != l || got.Remaining != l.Burst() {
			t.Errorf("%v: got %+v, error %v; want %d", l, got, err, l.Burst())
		}
		if err := errors.Join(table.Clear(context.Background(), "p", client.Key), m.Update(byIP("p", l))); err != nil {
			t.Fatal(err)
		}
		spend(t, m, 3, "")
		if err := errors.Join(m.Update(byIP("p", hourly)), c.Reset(context.Background(), client), m.Update(byIP("p", l))); err != nil {
			t.Fatal(err)
		}
		if got, want := remains(t, c, client), "default="+strconv.FormatInt(l.Burst(), 10)+"*"; got != want {
			t.Errorf("%v: got %s after Update, want %s", l, got, want)
		}
	}
}

// A candidate has a place of its own, also where its algorithm is that of the live limit.
func TestResetOfACandidate(t *testing.T) {
	p, candidate := byIP("p", hourly), algorithms.TokenBucket(5, time.Hour)
	p.Candidate = &candidate
	m := newMiddleware(t, newStill(t), nil, p)
	c := ratelimit.NewConsole(m)
	spend(t, m, 3, "")
	if err := c.Reset(context.Background(), client); err != nil {
		t.Error(err)
	}
	if got := remains(t, c, client); got != "default=10* candidate=5" {
		t.Errorf("got %s, want both full", got)
	}
}

func TestBanAndUnban(t *testing.T) {
	ctx, table := context.Background(), overrides.NewMemory()
	shadow := byIP("dark", hourly)
	shadow.Shadow = true
	m := newMiddleware(t, newStill(t), &ratelimit.Options{Overrides: table}, plans(), shadow)
	c := ratelimit.NewConsole(m)
	status := func(want int) {
		t.Helper()
		if v, err := m.Check(from("192.0.2.1")); err != nil || v.Status != want {
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
	override(t, table, "p", client.Key, overrides.Override{Mode: overrides.Shadow})
	if err := c.Unban(ctx, client); !errors.Is(err, ratelimit.ErrNotFound) {
		t.Errorf("got error %v, want ErrNotFound: another override stays", err)
	}
	if err := c.Ban(ctx, ratelimit.Subject{Policy: "dark", Key: client.Key}, time.Time{}); !errors.Is(err, ratelimit.ErrUneditable) {
		t.Errorf("got error %v of a shadow, want ErrUneditable", err)
	}
}

func TestConsoleMistakes(t *testing.T) {
	ctx := context.Background()
	fixed := ratelimit.NewConsole(newMiddleware(t, newStill(t), &ratelimit.Options{Overrides: found{}}, plans()))
	down := ratelimit.NewConsole(newMiddleware(t, broken(algorithms.ErrUnavailable), nil, plans()))
	c := ratelimit.NewConsole(newMiddleware(t, newStill(t), nil, plans()))
	_, noPolicy := c.Explain(ctx, ratelimit.Subject{Policy: "q", Key: "ip=::1"})
	_, noTier := c.Explain(ctx, ratelimit.Subject{Policy: "p", Key: "ip=::1", Tier: "silver"})
	_, noKey := c.Explain(ctx, ratelimit.Subject{Policy: "p"})
	_, noLimiter := down.Explain(ctx, client)
	for _, tt := range []struct {
		name      string
		got, want error
	}{
		{"no such policy", noPolicy, ratelimit.ErrNotFound},
		{"no such tier", noTier, ratelimit.ErrNotFound},
		{"no key", noKey, algorithms.ErrInvalid},
		{"no limiter", noLimiter, algorithms.ErrUnavailable},
		{"reset without limiter", down.Reset(ctx, client), algorithms.ErrUnavailable},
		{"reset of no policy", c.Reset(ctx, ratelimit.Subject{Policy: "q", Key: "ip=::1"}), ratelimit.ErrNotFound},
		{"reset of everyone", c.Reset(ctx, ratelimit.Subject{Policy: "p", Key: "*"}), algorithms.ErrInvalid},
		{"grant of nothing", c.Grant(ctx, client, 0), algorithms.ErrInvalid},
		{"grant of no policy", c.Grant(ctx, ratelimit.Subject{Policy: "q", Key: "ip=::1"}, 1), ratelimit.ErrNotFound},
		{"ban without overrides", c.Ban(ctx, client, time.Time{}), ratelimit.ErrUneditable},
		{"ban in what is fixed", fixed.Ban(ctx, client, time.Time{}), ratelimit.ErrUneditable},
		{"unban without overrides", c.Unban(ctx, client), ratelimit.ErrUneditable},
		{"unban of no policy", c.Unban(ctx, ratelimit.Subject{Policy: "q", Key: "ip=::1"}), ratelimit.ErrNotFound},
	} {
		if !errors.Is(tt.got, tt.want) {
			t.Errorf("%s: got error %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}
