// Tests of the console: reset, grant, ban.

package console_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
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

// take takes three units of a limit of the client, which a request would return if the limit is Concurrent.
func take(t *testing.T, l algorithms.Limiter, limit algorithms.Limit) {
	t.Helper()
	if err := l.Allow(ctx, []algorithms.Check{{Policy: "p", Key: client.Key, Limit: limit, Cost: 3}}); err != nil {
		t.Fatal(err)
	}
}

// left returns the units that the client has left of a limit.
func left(t *testing.T, l algorithms.Limiter, policy string, limit algorithms.Limit) int64 {
	t.Helper()
	checks := []algorithms.Check{{Policy: policy, Key: client.Key, Limit: limit, Exact: true}}
	if err := l.Allow(ctx, checks); err != nil {
		t.Fatal(err)
	}
	return checks[0].Decision.Remaining
}

// Reset finds every state of a key. Grant credits each.
func TestResetAndGrant(t *testing.T) {
	table, store, p := overrides.NewMemory(), newStill(), plans()
	m := newMiddleware(t, store, table, p)
	c, leaky := console.New(m), algorithms.LeakyBucket(100, time.Second)
	want := func(base, gold, candidate, override int64) {
		t.Helper()
		got := [4]int64{left(t, store, "p", p.Limit), left(t, store, "p", p.Tiers["gold"]), left(t, store, "p~candidate", *p.Candidate), left(t, store, "p", leaky)}
		if got != [4]int64{base, gold, candidate, override} {
			t.Errorf("got %v left of the default, gold, the candidate and the override, want %v", got, [4]int64{base, gold, candidate, override})
		}
	}
	spend(t, m, 4, "")
	spend(t, m, 4, "gold")
	if _, err := c.Grant(ctx, client, 2); err != nil {
		t.Error(err)
	}
	want(8, 98, 1, 100)
	if _, err := c.Grant(ctx, client, 1000); err != nil {
		t.Error(err)
	}
	want(10, 100, 1, 100)
	override(t, table, "p", client.Key, ratelimit.Override{Limit: leaky})
	spend(t, m, 6, "gold")
	want(10, 100, 1, 94)
	if _, err := c.Reset(ctx, client); err != nil {
		t.Error(err)
	}
	want(10, 100, 5, 100)
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
		"PerWeek": algorithms.PerWeek(10, nil, time.Monday), "PerQuarter": algorithms.PerQuarter(10, nil), "PerYear": algorithms.PerYear(10, nil),
		"Concurrent": algorithms.Concurrent(10, time.Hour), "Nobody": algorithms.Nobody(),
	}
	for _, name := range constructors(t) {
		l, known := limits[name]
		if !known {
			t.Errorf("no limit of algorithms.%s", name)
			continue
		}
		table := overrides.NewMemory()
		store := newStill()
		m := newMiddleware(t, store, table, byUser("p", hourly))
		c := console.New(m)
		override(t, table, "p", client.Key, ratelimit.Override{Limit: l})
		take(t, store, l)
		if err := errors.Join(table.Clear(ctx, "p", client.Key), reset(c)); err != nil {
			t.Error(err)
		}
		override(t, table, "p", client.Key, ratelimit.Override{Limit: l})
		if got := left(t, store, "p", l); got != l.Burst() {
			t.Errorf("%v: got %d left, want %d", l, got, l.Burst())
		}
		if err := errors.Join(table.Clear(ctx, "p", client.Key), m.Update(byUser("p", l))); err != nil {
			t.Fatal(err)
		}
		take(t, store, l)
		if err := errors.Join(m.Update(byUser("p", hourly)), reset(c), m.Update(byUser("p", l))); err != nil {
			t.Fatal(err)
		}
		if got := left(t, store, "p", l); got != l.Burst() {
			t.Errorf("%v: got %d left after Update, want %d", l, got, l.Burst())
		}
	}
}

// A candidate has a state of its own, even if its algorithm is the live limit's.
func TestResetOfACandidate(t *testing.T) {
	p, candidate := byUser("p", hourly), algorithms.TokenBucket(5, time.Hour)
	p.Candidate = &candidate
	store := newStill()
	m := newMiddleware(t, store, nil, p)
	spend(t, m, 3, "")
	if _, err := console.New(m).Reset(ctx, client); err != nil {
		t.Error(err)
	}
	if own, tried := left(t, store, "p", hourly), left(t, store, "p~candidate", candidate); own != 10 || tried != 5 {
		t.Errorf("got %d and %d, want both full", own, tried)
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
	if err := c.Ban(ctx, client, time.Time{}, ""); err != nil {
		t.Error(err)
	}
	status(403)
	if lifted, err := c.Unban(ctx, client); err != nil || len(lifted) != 1 || lifted[0].Override == nil {
		t.Errorf("got %+v, %v, want the ban", lifted, err)
	}
	if lifted, err := c.Unban(ctx, client); !errors.Is(err, console.ErrNotFound) || lifted != nil {
		t.Errorf("got %+v, %v, want ErrNotFound: no ban is left", lifted, err)
	}
	status(0)
	override(t, table, "p", client.Key, ratelimit.Override{Mode: ratelimit.ModeShadow})
	if _, err := c.Unban(ctx, client); !errors.Is(err, console.ErrNotFound) {
		t.Errorf("got error %v, want ErrNotFound, because another override stays", err)
	}
	if err := c.Ban(ctx, console.Subject{Policy: "dark", Key: client.Key}, time.Time{}, ""); !errors.Is(err, console.ErrUneditable) {
		t.Errorf("got error %v of a shadow, want ErrUneditable", err)
	}
}

// Who and Bans show the ban of a repeat offender, and Unban lifts it, also without a table of overrides.
func TestRepeatOffender(t *testing.T) {
	for name, table := range map[string]ratelimit.Overrides{"no table": nil, "table": overrides.NewMemory()} {
		p := byUser("p", algorithms.TokenBucket(1, time.Hour))
		p.Ban = &ratelimit.Ban{Denials: 2, Within: time.Hour, For: 10 * time.Hour}
		m := newMiddleware(t, newStill(), table, p)
		c := console.New(m)
		spend(t, m, 3, "")
		redistest.UntilEmpty(t, "the offender is banned", func() string {
			if e := who(t, c, client)[0]; e.Verdict != console.Denied || e.Reason != console.ByBan || e.ClearsAfter != console.Wait(10*time.Hour) {
				return fmt.Sprintf("got %v", e)
			}
			return ""
		})
		bans := func(c *console.Console, want int) {
			t.Helper()
			if all, err := c.Bans(ctx); err != nil || len(all) != want || want == 1 && (all[0].Key != client.Key || all[0].ClearsAfter != console.Wait(10*time.Hour) || all[0].First.IsZero()) {
				t.Errorf("%s: got the bans %v, error %v, want %d", name, all, err, want)
			}
		}
		spend(t, m, 1, "") // a denial by the ban
		bans(c, 1)
		bans(console.New(m, m), 1) // listed once
		if set, err := c.Overrides(ctx, time.Time{}); err != nil || len(set) != 0 {
			t.Errorf("%s: got %v, error %v, want no operator's ban", name, set, err)
		}
		if _, err := c.Unban(ctx, client); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		bans(c, 0)
		if e := who(t, c, client)[0]; e.Reason != console.ByDefault {
			t.Errorf("%s: got %v, want no ban", name, e)
		}
	}
}

func TestErrors(t *testing.T) {
	fixed := console.New(newMiddleware(t, newStill(), readOnly{}, plans()))
	down := console.New(newMiddleware(t, broken{algorithms.ErrUnavailable}, nil, plans()))
	c := console.New(newMiddleware(t, newStill(), nil, plans()))
	_, noPolicy := c.Who(ctx, console.Subject{Policy: "q", Key: "usr=1"})
	_, noClient := c.Who(ctx)
	_, noKey := c.Who(ctx, console.Subject{Policy: "p"})
	_, noHash := c.Who(ctx, console.Subject{Key: "usr=#0123456789abcdef"})
	_, noLimiter := down.Who(ctx, client)
	for _, tt := range []struct {
		name      string
		got, want error
	}{
		{"no such policy", noPolicy, algorithms.ErrInvalid},
		{"no client", noClient, algorithms.ErrInvalid},
		{"no such hash", noHash, console.ErrNotFound},
		{"no key", noKey, algorithms.ErrInvalid},
		{"no limiter", noLimiter, algorithms.ErrUnavailable},
		{"reset without limiter", failure(down.Reset(ctx, client)), algorithms.ErrUnavailable},
		{"reset of no policy", failure(c.Reset(ctx, console.Subject{Policy: "q", Key: "usr=1"})), console.ErrNotFound},
		{"reset of everyone", failure(c.Reset(ctx, console.Subject{Policy: "p", Key: "*"})), algorithms.ErrInvalid},
		{"grant of nothing", failure(c.Grant(ctx, client, 0)), algorithms.ErrInvalid},
		{"grant of no policy", failure(c.Grant(ctx, console.Subject{Policy: "q", Key: "usr=1"}, 1)), console.ErrNotFound},
		{"ban without overrides", c.Ban(ctx, client, time.Time{}, ""), console.ErrUneditable},
		{"ban in a table that is read-only", fixed.Ban(ctx, client, time.Time{}, ""), console.ErrUneditable},
		{"unban without overrides", failure(c.Unban(ctx, client)), console.ErrUneditable},
		{"unban of no policy", failure(c.Unban(ctx, console.Subject{Policy: "q", Key: "usr=1"})), console.ErrNotFound},
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
		"token bucket": algorithms.TokenBucket, "leaky bucket": algorithms.LeakyBucket, "fixed window": algorithms.FixedWindow, "counter": algorithms.SlidingWindowCounter,
		"log": algorithms.SlidingWindowLog,
	} {
		t.Run(name, func(t *testing.T) {
			p := plans()
			p.Candidate, p.Limit, p.Tiers = nil, hour(limit, 100), map[string]algorithms.Limit{"gold": hour(limit, 5000)}
			m := newMiddleware(t, newStill(), nil, p)
			c := console.New(m)
			spend(t, m, 3000, "gold")
			if _, err := c.Grant(ctx, client, 10); err != nil {
				t.Fatal(err)
			}
			v, err := m.Check(asUser("42", "gold"))
			if err != nil || v.Policies[0].Decision.Remaining != 2009 {
				t.Errorf("got %d left, %v, want 2009: 10 of 3000 units are back, and the request took one", v.Policies[0].Decision.Remaining, err)
			}
		})
	}
}

// reset forgets the units of the client.
func reset(c *console.Console) error {
	_, err := c.Reset(ctx, client)
	return err
}

// failure returns the error of a change.
func failure[T any](_ T, err error) error { return err }
