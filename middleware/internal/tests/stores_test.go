// Tests of several instances in this process, on one Redis and on a Cluster.

package tests

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
)

// A fleet is some instances of a service that share a Redis or a Cluster.
type fleet struct {
	*testing.T
	clients []shared.Client
}

// settle closes instances, so that all is settled.
func (f *fleet) settle(instances []*ratelimit.Middleware) {
	f.Helper()
	for _, m := range instances {
		if err := m.Close(context.Background()); err != nil {
			f.Error(err)
		}
	}
}

// fleets runs test with four instances on one Redis, and on a Cluster of three masters.
func fleets(t *testing.T, test func(f *fleet)) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		server, f := redistest.Start(t), &fleet{T: t}
		for range 4 {
			f.clients = append(f.clients, server.Client())
		}
		test(f)
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		cluster, f := redistest.StartCluster(t), &fleet{T: t}
		for range 4 {
			f.clients = append(f.clients, cluster.Client())
		}
		test(f)
	})
}

// start returns a middleware per instance, with the recommended limiter.
func (f *fleet) start(policies ...ratelimit.Policy) []*ratelimit.Middleware {
	f.Helper()
	var all []*ratelimit.Middleware
	for _, client := range f.clients {
		limiter := newShared(f, client, shared.Options{Deadline: redistest.Patience})
		all = append(all, newMiddleware(f, patient{limiter}, &ratelimit.Options{Logger: quiet}, policies...))
	}
	return all
}

// soon waits until a request gets a status.
func (f *fleet) soon(m *ratelimit.Middleware, what string, want func(ratelimit.Verdict) bool) {
	f.Helper()
	redistest.UntilEmpty(f, what, func() string {
		v, err := m.Check(from("192.0.2.1"))
		if err != nil {
			f.Fatal(err)
		}
		if want(v) {
			return ""
		}
		return fmt.Sprintf("got %+v", v)
	})
}

// everybody is a private policy whose slot differs from the client's.
var everybody = forAll("everybody", algorithms.TokenBucket(1_000_000, time.Second))

// TestFleetSettles: the others count the settlements of one instance.
func TestFleetSettles(t *testing.T) {
	longtest.Skip(t)
	fleets(t, func(f *fleet) {
		p := lateByIP("tokens", daily, 10)
		all := f.start(p, everybody)
		record(all[0].Handler(settling(t, "tokens", 30)), from("192.0.2.1"))
		record(all[1].Handler(settling(t, "tokens", 3)), from("192.0.2.1"))
		f.settle(all[:2])
		if v := check(t, all[3], from("192.0.2.1")); v.Policies[0].Decision.Remaining != 100-30-3-10 {
			t.Errorf("got %+v, want 57 left", v.Policies[0])
		}
	})
}

// TestFleetCountsOutcomes: of 200 requests in flight at four instances, no more than the limit can fail.
func TestFleetCountsOutcomes(t *testing.T) {
	longtest.Skip(t)
	fleets(t, func(f *fleet) {
		p := newOutcomes(algorithms.SlidingWindowLog(5, time.Hour))
		failed, arrived := new(counter), new(sync.WaitGroup)
		arrived.Add(200)
		var all sync.WaitGroup
		instances := f.start(p.Policy, everybody)
		for i, m := range instances {
			h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				arrived.Done()
				arrived.Wait() // until all others have been decided
				if i%2 == 0 {
					failed.ServeHTTP(w, r)
					w.WriteHeader(http.StatusUnauthorized)
				}
			}))
			for range 50 {
				all.Go(func() {
					if record(h, from("192.0.2.1")).Code == http.StatusTooManyRequests {
						arrived.Done()
					}
				})
			}
		}
		all.Wait()
		f.settle(instances)
		left := 5 - failed.n.Load()
		v := check(t, f.start(p.Policy)[0], from("192.0.2.1"))
		if v.Allowed != (left > 0) || v.Policies[0].Decision.Remaining != max(0, left-1) {
			t.Errorf("got %+v after %d failures of 5, want the rest left", v.Policies[0], failed.n.Load())
		}
	})
}

// TestFleetBans: a ban begins and ends on all instances.
func TestFleetBans(t *testing.T) {
	longtest.Skip(t)
	fleets(t, func(f *fleet) {
		all := f.start(banning("p", algorithms.TokenBucket(1, time.Hour)), everybody)
		check(t, all[0], from("192.0.2.1"))
		f.soon(all[1], "it bans after denials", func(v ratelimit.Verdict) bool { return v.Policies[0].Banned })
		f.soon(all[2], "another instance bans, too", func(v ratelimit.Verdict) bool { return v.Policies[0].Banned })
		if err := all[1].Close(context.Background()); err != nil { // its late counts of denials would ban again
			t.Error(err)
		}
		if _, err := console.New(all[3]).Unban(context.Background(), console.Subject{Policy: "p", Key: "ip=192.0.2.1"}); err != nil {
			t.Error(err)
		}
		v := check(t, all[3], from("192.0.2.1"))
		if v.Policies[0].Banned {
			t.Errorf("got %+v where the ban was ended", v)
		}
		f.soon(all[2], "another instance forgives, too", func(v ratelimit.Verdict) bool { return !v.Policies[0].Banned })
	})
}

// TestFleetHolds: all instances share the places of a concurrent limit.
func TestFleetHolds(t *testing.T) {
	longtest.Skip(t)
	fleets(t, func(f *fleet) {
		p := byIP("streams", algorithms.Concurrent(2, time.Minute))
		all := f.start(p, everybody)
		release, running := make(chan struct{}), make(chan struct{})
		var both sync.WaitGroup
		for _, m := range all[:2] {
			h := m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				running <- struct{}{}
				<-release
			}))
			both.Go(func() { record(h, from("192.0.2.1")) })
			<-running
		}
		w := record(all[2].Handler(ok), from("192.0.2.1"))
		if w.Code != http.StatusTooManyRequests {
			t.Errorf("got %d, want 429 while two run", w.Code)
		}
		close(release)
		both.Wait()
		served := all[2].Handler(ok)
		redistest.Until(t, "a request is admitted, because none runs anymore", func() bool {
			return record(served, from("192.0.2.1")).Code == http.StatusOK
		})
	})
}
