// Edits and look-ups against a model.

package overrides_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

type place struct{ policy, key string }

// TestModel edits at random. Memory, Redis and another instance must agree with a map.
func TestModel(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	one, other := newRedis(t, s.Client(), nil), newRedis(t, s.Client(), nil)
	policies, keys := []string{"p", "q", "*"}, []string{"usr=1", "usr=2", "usr=1|rt=a", "usr=1|rt=b", "ip=::1", "*"}
	places := rapid.Custom(func(t *rapid.T) place {
		p := place{rapid.SampledFrom(policies).Draw(t, "policy"), rapid.SampledFrom(keys).Draw(t, "key")}
		if p.policy == overrides.All {
			p.key, _, _ = strings.Cut(p.key, "|")
		}
		return p
	})
	rapid.Check(t, func(t *rapid.T) {
		if err := s.Client().FlushAll(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		stores, model := []store{overrides.NewMemory(), one}, make(map[place]ratelimit.Override)
		for range rapid.IntRange(1, 12).Draw(t, "edits") {
			at := places.Draw(t, "place")
			if rapid.Bool().Draw(t, "clear") {
				for _, s := range stores {
					if err := s.Clear(ctx, at.policy, at.key); err != nil {
						t.Fatal(err)
					}
				}
				delete(model, at)
				continue
			}
			modes := []ratelimit.Mode{"", ratelimit.ModeShadow, ratelimit.ModeOff, ratelimit.ModeBanned}
			o := ratelimit.Override{Mode: rapid.SampledFrom(modes).Draw(t, "mode")}
			if rapid.Bool().Draw(t, "limited") {
				o.Limit = algorithms.TokenBucket(rapid.Int64Range(1, 5).Draw(t, "requests"), time.Minute)
			}
			limited := o.Limit != algorithms.Limit{}
			invalid := limited && (o.Mode == ratelimit.ModeOff || o.Mode == ratelimit.ModeBanned || at.policy == overrides.All) ||
				o.Mode == ratelimit.ModeBanned && at.key == ratelimit.Everyone
			for _, s := range stores {
				if err := s.Set(ctx, at.policy, at.key, o); (err != nil) != invalid {
					t.Fatalf("%T: %v: %+v: got error %v, want one: %t", s, at, o, err, invalid)
				}
			}
			if !invalid {
				model[at] = o
			}
		}
		for _, s := range append(stores, other) {
			if r, ok := s.(*overrides.Redis); ok {
				if err := r.Refresh(ctx); err != nil {
					t.Fatal(err)
				}
			}
			for _, policy := range policies {
				for _, key := range keys {
					want, has := inForce(model, policy, key)
					if got, ok := s.Find(policy, key); ok != has || !same(got, want) {
						t.Fatalf("%T: %s %s: got %+v, %t, want %+v, %t", s, policy, key, got, ok, want, has)
					}
				}
			}
		}
	})
}

// inForce is the documented precedence.
func inForce(model map[place]ratelimit.Override, policy, key string) (ratelimit.Override, bool) {
	first, _, _ := strings.Cut(key, "|")
	for _, at := range []place{{policy, key}, {policy, first}, {policy, "*"}, {"*", first}, {"*", "*"}} {
		if o, ok := model[at]; ok {
			return o, true
		}
	}
	return ratelimit.Override{}, false
}
