// Tests of shares of instances that see different tenants.

package tests

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/middleware"
)

// A sharedMemory decides as a store that several instances share.
type sharedMemory struct {
	*algorithms.Memory
	asked map[string]int // calls, by the first check's policy
}

func (s *sharedMemory) Allow(ctx context.Context, checks []algorithms.Check) error {
	s.asked[checks[0].Policy]++
	err := s.Memory.Allow(ctx, checks)
	for i := range checks {
		checks[i].Decision.Source = algorithms.Shared
	}
	return err
}

// TestStickySessions: four instances that see two or three tenants each divide the limit as one instance does.
func TestStickySessions(t *testing.T) {
	for name, tt := range map[string]struct {
		load    tenantLoad
		weights []int
	}{
		"nine beside a hog": {tenantLoad{rates: rates(9, 20, 1_000)}, []int{1}},
		"weights":           {tenantLoad{rates: rates(6, 200), tiers: []string{"", "two", "five", "", "two", "five"}}, []int{1, 2, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &sharedMemory{algorithms.NewMemory(nil), make(map[string]int)}
				var instances []*ratelimit.Middleware
				for range 4 {
					instances = append(instances, newMiddleware(t, store, nil, capacity()))
				}
				l := tt.load
				l.run(t, time.Minute, instances...)
				if j := jain(l.got, tt.weights...); j < 0.99 {
					t.Errorf("got %v, Jain's index %v", l.got, j)
				}
				l.judge(t, time.Minute)
				// Two a second of each instance learn of the others, and each tenant is announced once in 5 s.
				if most := 61 * (4*2 + len(l.rates)); store.asked["capacity~tenants"] > most {
					t.Errorf("got %d announcements, want at most %d", store.asked["capacity~tenants"], most)
				}
			})
		})
	}
}

// TestTenantsOfOtherInstancesLeave: their shares are free again within two windows.
func TestTenantsOfOtherInstancesLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &sharedMemory{algorithms.NewMemory(nil), make(map[string]int)}
		one, other := newMiddleware(t, store, nil, capacity()), newMiddleware(t, store, nil, capacity())
		ask := func(m *ratelimit.Middleware, id string) {
			if _, err := m.Check(of(id, "five")); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []string{"a", "b", "c"} {
			ask(other, id)
		}
		ask(one, "d")
		if n, sum := one.Inside().Tenants("capacity"); n != 1 || sum != 20 {
			t.Errorf("got %d tenants here of weight %d in all, want 1 of 20", n, sum)
		}
		for range 11 {
			time.Sleep(time.Second)
			ask(one, "d")
		}
		if n, sum := one.Inside().Tenants("capacity"); n != 1 || sum != 5 {
			t.Errorf("later: got %d tenants of weight %d, want 1 of 5", n, sum)
		}
	})
}

// TestTenantsThroughRedis: two instances count each other's tenants in a real Redis, and in a Cluster.
func TestTenantsThroughRedis(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) shared.Client{
		"server":  func(t *testing.T) shared.Client { return redistest.Start(t).Client() },
		"cluster": func(t *testing.T) shared.Client { return redistest.StartCluster(t).Client() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := start(t)
			var instances []*ratelimit.Middleware
			for range 2 {
				instances = append(instances, newMiddleware(t, newShared(t, client, shared.Options{}), nil, capacity()))
			}
			redistest.UntilEmpty(t, "both instances know both tenants", func() (missing string) {
				for i, m := range instances {
					if _, err := m.Check(of([]string{"a", "b"}[i], "two")); err != nil {
						t.Fatal(err)
					}
					if n, sum := m.Inside().Tenants("capacity"); n != 1 || sum != 4 {
						missing = fmt.Sprintf("instance %d: got %d tenants of weight %d in all, want 1 of 4", i, n, sum)
					}
				}
				return missing
			})
		})
	}
}
