// Edits and look-ups against a model.

package overrides_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/overrides"
	"github.com/penstock-go/penstock/internal/redistest"
)

type place struct{ policy, key string }

// TestModel edits at random, and wants of memory, of Redis and of another instance what two maps say.
func TestModel(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	one, other := newRedis(t, s.Client(), nil), newRedis(t, s.Client(), nil)
	policies, keys := []string{"p", "q", "*"}, []string{"usr=1", "usr=2", "ip=::1", "*"}
	places := rapid.Custom(func(t *rapid.T) place {
		p := place{rapid.SampledFrom(policies).Draw(t, "policy"), rapid.SampledFrom(keys).Draw(t, "key")}
		if p.policy == overrides.All {
			p.key = overrides.Everyone
		}
		return p
	})
	rapid.Check(t, func(t *rapid.T) {
		if err := s.Client().FlushAll(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		stores, model := []store{overrides.NewMemory(), one}, make(map[place]overrides.Override)
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
			o := overrides.Override{Mode: overrides.Mode(rapid.IntRange(0, 3).Draw(t, "mode"))}
			if rapid.Bool().Draw(t, "limited") {
				o.Limit = algorithms.TokenBucket(rapid.Int64Range(1, 5).Draw(t, "requests"), time.Minute)
			}
			if o.Validate(at.policy, at.key) != nil {
				continue
			}
			for _, s := range stores {
				if err := s.Set(ctx, at.policy, at.key, o); err != nil {
					t.Fatal(err)
				}
			}
			model[at] = o
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
func inForce(model map[place]overrides.Override, policy, key string) (overrides.Override, bool) {
	for _, at := range []place{{policy, key}, {policy, "*"}, {"*", "*"}} {
		if o, ok := model[at]; ok {
			return o, true
		}
	}
	return overrides.Override{}, false
}
