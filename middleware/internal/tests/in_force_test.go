// Tests of InForce, which says what the next request meets.

package tests

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// fixed is a table with one answer. It also has what package overrides refuses.
type fixed struct {
	o     ratelimit.Override
	found bool
}

func (f fixed) Find(string, string) (ratelimit.Override, bool) { return f.o, f.found }

// TestInForceIsWhatRequestsMeet: every combination of an override, LimitOf, tiers and Shadow.
func TestInForceIsWhatRequestsMeet(t *testing.T) {
	limits := []algorithms.Limit{{}, perHour(40), perHour(-1), algorithms.LeakyBucket(5, time.Hour), algorithms.Nobody(), algorithms.Concurrent(3, time.Minute)}
	tables := []ratelimit.Overrides{nil, fixed{}}
	for _, mode := range []ratelimit.Mode{"", ratelimit.ModeShadow, ratelimit.ModeOff, ratelimit.ModeBanned, "mistyped"} {
		for _, l := range limits {
			tables = append(tables, fixed{ratelimit.Override{Mode: mode, Limit: l}, true})
		}
	}
	slots := byIP("slots", algorithms.Concurrent(5, time.Minute))
	slots.Shadow = true
	for _, table := range tables {
		for _, own := range limits {
			for _, tier := range []string{"", "gold", "glod"} {
				for _, shadow := range []bool{false, true} {
					p := byPlan("p", perHour(10), map[string]algorithms.Limit{"gold": perHour(20)})
					p.Shadow = shadow
					p.LimitOf = func(*http.Request) (algorithms.Limit, error) { return own, nil }
					m := newMiddleware(t, newStill(t), &ratelimit.Options{Overrides: table, Logger: quiet}, p, slots)
					r := onPlan(from("192.0.2.1"), tier)
					v, _ := m.Check(r) // of an override that bans slots, too
					f, found := m.InForce("p", "usr=me", tier, own)
					name := fmt.Sprintf("%+v, LimitOf %v, tier %q, shadow %t", table, own, tier, shadow)
					if !found {
						t.Fatalf("%s: got no policy", name)
					}
					got, asked := v.Policy("p")
					switch {
					case f.Mode == ratelimit.ModeOff:
						if asked {
							t.Errorf("%s: got %+v, want the policy left out", name, got)
						}
					case !asked: // a ban of slots has replaced it; slots is a shadow, so it has not
						t.Errorf("%s: got no part of the policy", name)
					case got.Limit != f.Limit, got.Shadow != (f.Mode == ratelimit.ModeShadow), got.Banned != (f.Mode == ratelimit.ModeBanned),
						got.Override != (f.Override != nil), (got.Tier == tier) != (tier == "gold" || tier == ""):
						t.Errorf("%s: got %+v, and InForce says %+v", name, got, f)
					}
				}
			}
		}
	}
}

// TestInForceSaysWhy: where the limit comes from, and why another one does not hold.
func TestInForceSaysWhy(t *testing.T) {
	p := byPlan("p", perHour(10), map[string]algorithms.Limit{"gold": perHour(20)})
	p.LimitOf = bringing
	p.ChargeIf = func(int) bool { return true }
	leaky := algorithms.LeakyBucket(5, time.Hour)
	for _, tt := range []struct {
		override, own algorithms.Limit
		tier          string
		want          int64
		from          string
		ignored       bool
	}{
		{want: 10, from: "default"},
		{tier: "glod", want: 10, from: "default"},
		{tier: "gold", want: 20, from: "tier"},
		{tier: "gold", own: perHour(30), want: 30, from: "limit_of"},
		{tier: "gold", own: perHour(30), override: perHour(40), want: 40, from: "override"},
		{tier: "gold", own: leaky, want: 20, from: "tier", ignored: true},
		{own: perHour(30), override: leaky, want: 30, from: "limit_of", ignored: true},
		{override: leaky, want: 10, from: "default", ignored: true},
	} {
		m := newMiddleware(t, newStill(t), &ratelimit.Options{Overrides: fixed{ratelimit.Override{Limit: tt.override}, true}}, p)
		f, found := m.InForce("p", "usr=me", tt.tier, tt.own)
		if !found || f.Limit != perHour(tt.want) || f.From != tt.from || (f.Ignored != nil) != tt.ignored || f.Override == nil {
			t.Errorf("%+v: got %+v", tt, f)
		}
	}
	none := newMiddleware(t, newStill(t), nil, ratelimit.Policy{Name: "p", Key: keyfunc.IP(nil), Limit: hourly})
	if f, found := none.InForce("p", "ip=192.0.2.1", "", perHour(30)); !found || f.Limit != hourly || f.Override != nil {
		t.Errorf("got %+v, %t without LimitOf, want the policy's limit", f, found)
	}
	if f, found := none.InForce("q", "ip=192.0.2.1", "", algorithms.Limit{}); found {
		t.Errorf("got %+v of a policy that does not exist", f)
	}
}
