// Tests of Who: it agrees with the next request, or says that it does not know.

package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// says answers Who, one standing per line: its policy, key, verdict, reason, and for each limit tier=left.
func says(t *testing.T, c *console.Console, client ...console.Subject) string {
	t.Helper()
	var lines []string
	for _, s := range who(t, c, client...) {
		line := fmt.Sprint(s.Policy, " ", s.Key, " ", s.Verdict, " ", s.Reason)
		for _, l := range s.Limits {
			line += fmt.Sprint(" ", l.Tier, "=", l.Remaining)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// TestWhoKnowsTheTier: before a denial the answer stands per tier. It is never "denied" for a limit that may be another
// client's. After a denial, the tier is known.
func TestWhoKnowsTheTier(t *testing.T) {
	p := byUser("p", algorithms.TokenBucket(10, time.Hour))
	p.Tiers = map[string]algorithms.Limit{"pro": algorithms.TokenBucket(100, time.Hour), "tiny": algorithms.TokenBucket(5, time.Hour)}
	other := byUser("q", algorithms.TokenBucket(1000, time.Hour))
	other.Tiers = map[string]algorithms.Limit{"pro": algorithms.TokenBucket(2000, time.Hour)}
	m := newMiddleware(t, newStill(), nil, p, other)
	c := console.New(m)
	spend(t, m, 50, "pro")
	if got := says(t, c, client); got != "p usr=42 unknown  =0 pro=50 tiny=0" {
		t.Errorf("got %s, want the state of each tier", got)
	}
	if got := who(t, c, client)[0].Says; got != "p may deny usr=42: it depends on the client's tier" {
		t.Errorf("got %s", got)
	}
	spend(t, m, 51, "pro")
	if got, want := says(t, c, console.Subject{ID: "42"}), "p usr=42 denied tier pro=0\nq usr=42 admitted tier pro=1900"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := who(t, c, client)[0].Says, "p denies usr=42 for 36s: token-bucket 100/1h has 0 left, from tier pro"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if s := who(t, c, client)[0]; s.Denied != 1 || s.First.IsZero() || s.Last.IsZero() {
		t.Errorf("got %+v, want one denial", s)
	}
	spend(t, m, 1, "tiny")
	if got := says(t, c, client); got != "p usr=42 denied tier tiny=0" {
		t.Errorf("got %s, want the tier of the last denial", got)
	}
}

// TestWhoKnowsLimitOf: LimitOf decides, so the answer is unknown before its first denial.
func TestWhoKnowsLimitOf(t *testing.T) {
	table, limit := overrides.NewMemory(), algorithms.TokenBucket(2, time.Hour)
	p := byUser("p", algorithms.TokenBucket(1, time.Hour))
	p.LimitOf = func(*http.Request) (algorithms.Limit, error) { return limit, nil }
	m := newMiddleware(t, newStill(), table, p)
	c := console.New(m)
	spend(t, m, 2, "")
	if got := says(t, c, client); got != "p usr=42 unknown  =0" {
		t.Errorf("got %s, want it unknown", got)
	}
	spend(t, m, 1, "")
	if s := who(t, c, client)[0]; s.Verdict != console.Denied || s.Reason != console.ByLimitOf || s.Limits[0].Limit != limit {
		t.Errorf("got %+v, want it denied by LimitOf", s)
	}
	override(t, table, "p", client.Key, ratelimit.Override{Limit: algorithms.TokenBucket(9, time.Hour)})
	if got := says(t, c, client); got != "p usr=42 admitted override =7" {
		t.Errorf("got %s, want the override's limit", got)
	}
}

// TestWhoKnowsOverrides: each mode, and where it is set.
func TestWhoKnowsOverrides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := overrides.NewMemory()
		p := ratelimit.Policy{Name: "p", Key: keyfunc.Join(user, keyfunc.Route()), Limit: algorithms.TokenBucket(1, time.Hour)}
		m := newMiddleware(t, algorithms.NewMemory(nil), table, p)
		c := console.New(m)
		spend(t, m, 2, "")
		const key = "usr=42|rt=unmatched"
		for _, tt := range []struct {
			policy, key string
			o           ratelimit.Override
			want        console.Verdict
			reason      console.Reason
			clears      time.Duration
		}{
			{"*", "*", ratelimit.Override{Mode: ratelimit.ModeOff}, console.Admitted, console.ByOverride, 0},
			{"*", "usr=42", ratelimit.Override{Mode: ratelimit.ModeBanned, Until: time.Now().Add(time.Minute)}, console.Denied, console.ByBan, time.Minute},
			{"p", "*", ratelimit.Override{Mode: ratelimit.ModeShadow}, console.Admitted, console.ByOverride, 0},
			{"p", "usr=42", ratelimit.Override{Limit: algorithms.Nobody()}, console.Denied, console.ByOverride, algorithms.Never},
			{"p", key, ratelimit.Override{}, console.Denied, console.ByDefault, time.Hour},
		} {
			override(t, table, tt.policy, tt.key, tt.o)
			s := who(t, c, client)[0]
			if s.Key != key || s.Verdict != tt.want || s.Reason != tt.reason || time.Duration(s.ClearsAfter) != tt.clears || !slices.Equal(s.SetFor, []string{tt.policy, tt.key}) {
				t.Errorf("%s %s: got %+v, want %s by %s for %v", tt.policy, tt.key, s, tt.want, tt.reason, tt.clears)
			}
			v, err := m.Check(asUser("42", ""))
			if err != nil || v.Allowed != (s.Verdict == console.Admitted) {
				t.Errorf("%s %s: the next request got %+v, %v, and Who said %s", tt.policy, tt.key, v, err, s.Says)
			}
		}
	})
}

// TestWhoFindsKeys: parts of a client complete each other, the policy has met the routes, and a denied key
// says what is unknown.
func TestWhoFindsKeys(t *testing.T) {
	at := func(r *http.Request, ip, route string) *http.Request {
		r.RemoteAddr, r.Pattern = ip+":1234", route
		return r
	}
	routed := func(name string, key keyfunc.Key) ratelimit.Policy {
		return ratelimit.Policy{Name: name, Key: keyfunc.Join(key, keyfunc.Route()), Limit: algorithms.TokenBucket(1, time.Hour)}
	}
	wide := keyfunc.IP(&keyfunc.IPOptions{IPv6Bits: 48, Hops: 1})
	m := newMiddleware(t, newStill(), nil, routed("users", user),
		ratelimit.Policy{Name: "both", Key: keyfunc.Join(user, keyfunc.IP(nil)), Limit: algorithms.TokenBucket(100, time.Hour)},
		ratelimit.Policy{Name: "wide", Key: wide, Limit: algorithms.TokenBucket(100, time.Hour)},
		ratelimit.Policy{Name: "all", Key: keyfunc.Const("all"), Limit: algorithms.TokenBucket(100, time.Hour)})
	c := console.New(m)
	for _, r := range []*http.Request{
		at(asUser("42", ""), "192.0.2.1", "GET /a"), at(asUser("42", ""), "192.0.2.1", "GET /a"), at(asUser("7", ""), "192.0.2.2", "GET /b"),
	} {
		if _, err := m.Check(r); err != nil {
			t.Fatal(err)
		}
	}
	const users = "users usr=42|rt=GET%20/a denied default =0\n"
	for _, tt := range []struct {
		name   string
		client []console.Subject
		want   string
	}{
		{"an account", []console.Subject{{ID: "42"}}, users + "both usr=42|ip unknown \nusers usr=42|rt=GET%20/b admitted default =1"},
		{"of one policy", []console.Subject{{ID: "42", Policy: "users"}}, users + "users usr=42|rt=GET%20/b admitted default =1"},
		{"an account at an address", []console.Subject{{ID: "42"}, {IP: netip.MustParseAddr("192.0.2.1")}},
			users + "users usr=42|rt=GET%20/b admitted default =1\nboth usr=42|ip=192.0.2.1 admitted default =99\nwide ip=192.0.2.1 admitted default =99"},
		{"a whole key", []console.Subject{{Key: "usr=42|rt=GET%20/a"}}, strings.TrimSpace(users)},
		{"a route", []console.Subject{{ID: "7"}, {Key: "rt=GET%20/b"}}, "users usr=7|rt=GET%20/b denied default =0\nboth usr=7|ip unknown "},
		{"a prefix", []console.Subject{{Key: "ip=2001:db8:1:2::/64"}}, "both usr|ip=2001:db8:1:2::/64 unknown \nwide ip=2001:db8:1::/48 admitted default =100"},
		{"a constant", []console.Subject{{Key: "const=all"}}, "all const=all admitted default =98"},
		{"as it is shown", []console.Subject{{Key: m.TopDenied("users", 1)[0].Key}}, strings.TrimSpace(users)},
		{"a shown part", []console.Subject{{Policy: "users", Key: strings.Split(m.TopDenied("users", 1)[0].Key, "|")[0]}}, users + "users usr=42|rt=GET%20/b admitted default =1"},
	} {
		got, want := strings.Split(says(t, c, tt.client...), "\n"), strings.Split(tt.want, "\n")
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, strings.Join(got, "\n"), tt.want)
		}
	}
}

// A shadow policy denies no request, whatever the override says.
func TestWhoOfAShadow(t *testing.T) {
	table, p := overrides.NewMemory(), byUser("p", algorithms.TokenBucket(1, time.Hour))
	p.Shadow = true
	m := newMiddleware(t, newStill(), table, p)
	spend(t, m, 2, "")
	for _, mode := range []ratelimit.Mode{"", ratelimit.ModeShadow, ratelimit.ModeBanned} {
		override(t, table, "p", client.Key, ratelimit.Override{Mode: mode})
		if s := who(t, console.New(m), client)[0]; s.Verdict != console.Admitted || s.Reason != console.ByDefault || s.Limits[0].Remaining != 0 {
			t.Errorf("mode %q: got %+v, want it admitted", mode, s)
		}
	}
}

// away is a shared limiter without Redis.
type away struct{ *algorithms.Memory }

func (away) Stats() algorithms.Stats { return algorithms.Stats{Shared: true} }

// TestWhoInAnOutage: the failure mode decides.
func TestWhoInAnOutage(t *testing.T) {
	for fail, want := range map[algorithms.FailureMode]string{
		algorithms.FailLocal: "p usr=42 admitted default =10", algorithms.FailOpen: "p usr=42 admitted outage =10",
		algorithms.FailClosed: "p usr=42 denied outage =10",
	} {
		p := byUser("p", hourly)
		p.Fail = fail
		if got := says(t, console.New(newMiddleware(t, away{newStill()}, nil, p)), client); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestDenied: who is denied now, and was not an hour ago.
func TestDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shadow := byIP("dark", algorithms.Nobody())
		shadow.Shadow = true
		m := newMiddleware(t, algorithms.NewMemory(nil), nil, byIP("p", algorithms.Nobody()), shadow)
		deny := func(ip string) {
			if _, err := m.Check(from(ip)); err != nil {
				t.Fatal(err)
			}
		}
		for range 6 { // one client is denied all the time, one with long pauses, and one is gone
			deny("192.0.2.1")
			time.Sleep(15 * time.Minute)
		}
		deny("192.0.2.9")
		time.Sleep(30 * time.Minute)
		deny("192.0.2.1")
		deny("192.0.2.2")
		deny("192.0.2.2")
		h := time.Now().Add(-time.Hour)
		all, young := console.New(m).Denied(time.Time{}), console.New(m).Denied(h)
		if len(all) != 2 || len(young) != 1 || young[0].Denied != 2 || !young[0].First.Equal(time.Now()) || !slices.Equal(young[0].Policies, []string{"p"}) {
			t.Errorf("got %+v and of the last hour %+v, want two clients, and one that is new", all, young)
		}
	})
}

// TestOverridesSince: what operators set since an instant is listed, and removed, in all policies.
func TestOverridesSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := overrides.NewMemory()
		c := console.New(newMiddleware(t, newStill(), table, byUser("p", hourly), byUser("q", hourly)))
		override(t, table, "p", "usr=1", ratelimit.Override{Mode: ratelimit.ModeOff})
		time.Sleep(time.Hour)
		began := time.Now()
		override(t, table, "*", "*", ratelimit.Override{Mode: ratelimit.ModeShadow})
		if err := c.Ban(ctx, console.Subject{Policy: "q", ID: "42"}, time.Time{}, ""); err != nil {
			t.Fatal(err)
		}
		list := func(since time.Time) string {
			t.Helper()
			all, err := c.Overrides(ctx, since)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for policy, keys := range all {
				for key, o := range keys {
					lines = append(lines, fmt.Sprint(policy, " ", key, " ", o.Mode, " ", o.Since.Equal(began)))
				}
			}
			slices.Sort(lines)
			return strings.Join(lines, ", ")
		}
		if got := list(time.Time{}); got != "* * shadow true, p usr=1 off false, q usr=42 banned true" {
			t.Errorf("got %s", got)
		}
		if _, err := c.ClearOverrides(context.Background(), began); err != nil {
			t.Fatal(err)
		}
		if got := list(time.Time{}); got != "p usr=1 off false" {
			t.Errorf("got %s after the removal", got)
		}
	})
}

// TestBanOfAFirstPart: it holds on all routes, and in all policies. So does its end.
func TestBanOfAFirstPart(t *testing.T) {
	policies := []ratelimit.Policy{
		{Name: "routed", Key: keyfunc.Join(user, keyfunc.Route()), Limit: hourly}, {Name: "plain", Key: user, Limit: hourly},
	}
	for policy, want := range map[string]int{"routed": 1, "*": 2} {
		m := newMiddleware(t, newStill(), overrides.NewMemory(), policies...)
		c, s := console.New(m), console.Subject{Policy: policy, ID: "42"}
		banned := func(id, route string) (n int) {
			r := asUser(id, "")
			r.Pattern = route
			v, err := m.Check(r)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range v.Policies {
				if p.Banned {
					n++
				}
			}
			return n
		}
		if err := c.Ban(ctx, s, time.Time{}, ""); err != nil {
			t.Fatal(err)
		}
		if a, b, other := banned("42", "GET /a"), banned("42", "GET /b"), banned("7", "GET /a"); a != want || b != want || other != 0 {
			t.Errorf("%s: got %d, %d and %d bans, want %d, %d and none", policy, a, b, other, want, want)
		}
		if _, err := c.Unban(ctx, s); err != nil || banned("42", "GET /a") != 0 {
			t.Errorf("%s: got %v, and a ban that stays", policy, err)
		}
	}
}
