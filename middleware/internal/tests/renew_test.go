package tests

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

var two = algorithms.Concurrent(2, 30*time.Second)

// streams serves requests for as long as a test wants.
type streams struct {
	http.Handler
	wg  sync.WaitGroup
	end map[string]chan struct{}
}

func newStreams(m *ratelimit.Middleware) *streams {
	s := &streams{end: make(map[string]chan struct{})}
	s.Handler = m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-s.end[r.Header.Get("Name")] }))
	return s
}

// begin begins a stream, and returns its status; 200 while it runs.
func (s *streams) begin(name string) (status int) {
	status = http.StatusOK
	s.end[name] = make(chan struct{})
	s.wg.Go(func() {
		if code := record(s, with(from("192.0.2.1"), "Name", name)).Code; code != http.StatusOK {
			status = code
		}
	})
	synctest.Wait()
	return status
}

func (s *streams) stop(name string) {
	close(s.end[name])
	synctest.Wait()
}

// TestHeldWhileServed: no more requests run at a time than the limit, however long, and each makes room when it ends.
func TestHeldWhileServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, p, seen := newMemory(t), byIP("streams", two), new(eventLog)
		s := newStreams(newMiddleware(t, slowToSettle(memory, func(context.Context) error { return nil }), &ratelimit.Options{Observers: []ratelimit.Observer{seen}}, p))
		begin := func(name string, want int) {
			t.Helper()
			if got := s.begin(name); got != want {
				t.Fatalf("%s: got %d, want %d", name, got, want)
			}
		}
		begin("a", 200)
		begin("b", 200)
		begin("c", 429)
		time.Sleep(10 * time.Minute) // renewed all the time
		begin("d", 429)
		s.stop("a")
		begin("e", 200)
		begin("f", 429)
		time.Sleep(45 * time.Second)
		s.stop("b")
		s.stop("e")
		s.wg.Wait()
		synctest.Wait()
		if got := left(t, memory, p, "ip=192.0.2.1"); got != 2 {
			t.Errorf("got %d left in the end, want 2", got)
		}
		settled := len(seen.of(ratelimit.Settled))
		time.Sleep(time.Minute)
		if more := len(seen.of(ratelimit.Settled)) - settled; more != 0 {
			t.Errorf("got %d settlements after the end, want none", more)
		}
	})
}

// TestHoldsEndWithPanics, before their time.
func TestHoldsEndWithPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, p := newMemory(t), byIP("streams", two)
		h := newMiddleware(t, memory, nil, p).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
		for range 5 {
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the handler's panic is gone")
					}
				}()
				record(h, from("192.0.2.1"))
			}()
		}
		if got := left(t, memory, p, "ip=192.0.2.1"); got != 2 {
			t.Errorf("got %d left, want 2", got)
		}
	})
}

// TestRenewedWhileItEnds: a hold that is renewed at the moment of the end is returned, after the renewal.
func TestRenewedWhileItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, p := newMemory(t), byIP("streams", two)
		var ops []string
		var mu sync.Mutex
		s := newStreams(newMiddleware(t, limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
			if op := checks[0].Op; op == algorithms.Renew || op == algorithms.Return {
				if op == algorithms.Renew {
					time.Sleep(500 * ms)
				}
				mu.Lock()
				ops = append(ops, op.String())
				mu.Unlock()
			}
			return memory.Allow(ctx, checks)
		}), nil, p))
		s.begin("a")
		time.Sleep(10*time.Second + 100*ms) // the first renewal is on its way
		s.stop("a")
		s.wg.Wait()
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if got := left(t, memory, p, "ip=192.0.2.1"); got != 2 || strings.Join(ops, " ") != "renew return" {
			t.Errorf("got %d left after %q, want 2 after a renewal and the return", got, ops)
		}
	})
}

// TestRenewedByTheLimitInForce: a changed limit's maxHold determines how often a hold is renewed.
func TestRenewedByTheLimitInForce(t *testing.T) {
	long, short := algorithms.Concurrent(2, time.Minute), algorithms.Concurrent(2, 6*time.Second)
	for _, tt := range []struct {
		name          string
		before, after algorithms.Limit
		want          []time.Duration // since the beginning
	}{
		{"shorter", long, short, []time.Duration{20 * time.Second, 22 * time.Second, 24 * time.Second, 26 * time.Second}},
		{"longer", short, long, []time.Duration{2 * time.Second, 22 * time.Second, 42 * time.Second, 62 * time.Second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory, start, renewed := newMemory(t), time.Now(), make(chan time.Duration, 100)
				m := newMiddleware(t, limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
					if c := checks[0]; c.Op == algorithms.Renew {
						if renewed <- time.Since(start); c.Limit != tt.after {
							t.Errorf("renewed under %v, want %v", c.Limit, tt.after)
						}
					}
					return memory.Allow(ctx, checks)
				}), nil, byIP("streams", tt.before))
				s := newStreams(m)
				s.begin("a")
				if err := m.Update(byIP("streams", tt.after)); err != nil {
					t.Fatal(err)
				}
				for _, want := range tt.want {
					if got := <-renewed; got != want {
						t.Errorf("renewed after %v, want %v", got, want)
					}
				}
				s.stop("a")
				s.wg.Wait()
			})
		})
	}
}

// TestRenewalsFail: the hold ends by itself, later ones are tried, and the request goes on.
func TestRenewalsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, p, fails := newMemory(t), byIP("streams", algorithms.Concurrent(1, 30*time.Second)), new(atomic.Bool)
		fails.Store(true)
		s := newStreams(newMiddleware(t, limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
			if checks[0].Op == algorithms.Renew && fails.Load() {
				return errors.New("not now")
			}
			return memory.Allow(ctx, checks)
		}), &ratelimit.Options{Logger: quiet}, p))
		s.begin("a")
		time.Sleep(31 * time.Second)
		if got := left(t, memory, p, "ip=192.0.2.1"); got != 1 {
			t.Errorf("got %d left, want the hold to have ended", got)
		}
		fails.Store(false)
		time.Sleep(10 * time.Second)
		if got := s.begin("b"); got != http.StatusTooManyRequests {
			t.Errorf("got %d, want 429: the first still runs, and holds again", got)
		}
		s.stop("a")
		if got := s.begin("c"); got != http.StatusOK {
			t.Errorf("got %d, want 200", got)
		}
		s.stop("c")
		s.wg.Wait()
	})
}

// TestHoldsAreValidated for every limit of a policy.
func TestHoldsAreValidated(t *testing.T) {
	short, late := byIP("short", algorithms.Concurrent(2, 999*ms)), byPlan("late", hourly, map[string]algorithms.Limit{"streams": two})
	late.ChargeIf = func(int) bool { return true }
	_, err := ratelimit.New(newMemory(t), nil, short, late)
	checkLines(t, err, []string{`"short" & hold time & at least 1s`, `"late" & a concurrent limit and ChargeIf cannot be combined`})
}

// TestHeldWithOthers: one request may have an outcome and a hold; both are settled.
func TestHeldWithOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, o := newMemory(t), newOutcomes(hourly)
		p, candidate := byIP("streams", two), algorithms.Concurrent(5, time.Minute)
		p.Candidate = &candidate
		s := newStreams(newMiddleware(t, memory, nil, o.Policy, p))
		s.begin("a")
		trial := p
		trial.Name, trial.Limit = "streams~candidate", candidate
		for range 2 {
			if a, b := left(t, memory, p, "ip=192.0.2.1"), left(t, memory, trial, "ip=192.0.2.1"); a != 1 || b != 4 {
				t.Errorf("got %d and %d left, want 1 and the candidate's 4", a, b)
			}
			time.Sleep(2 * time.Minute)
		}
		s.stop("a")
		s.wg.Wait()
		for _, p := range []ratelimit.Policy{p, trial, o.Policy} {
			if got := left(t, memory, p, "ip=192.0.2.1"); got != p.Limit.Burst() {
				t.Errorf("%s: got %d left, want all", p.Name, got)
			}
		}
	})
}

// TestHangUpsHoldNothing: a client that hangs up while the limiter decides holds nothing, because the middleware
// returns its units.
func TestHangUpsHoldNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, streams, tokens := newMemory(t), byIP("streams", two), lateByIP("tokens", daily, 10)
		lossy := limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
			return errors.Join(memory.Allow(context.WithoutCancel(ctx), checks), ctx.Err()) // the answer is lost, not the charge
		})
		h := newMiddleware(t, lossy, &ratelimit.Options{Logger: quiet}, streams, tokens).Handler(settling(t, "tokens", 0))
		ctx, hangUp := context.WithCancel(context.Background())
		hangUp()
		for range 5 {
			record(h, from("192.0.2.1").WithContext(ctx))
			synctest.Wait()
		}
		for _, p := range []ratelimit.Policy{streams, tokens} {
			if got := left(t, memory, p, "ip=192.0.2.1"); got != p.Limit.Burst() {
				t.Errorf("%s: got %d left, want all", p.Name, got)
			}
		}
	})
}

// TestUnknownKeysHoldNothing, because their requests are refused.
func TestUnknownKeysHoldNothing(t *testing.T) {
	memory := newMemory(t)
	h := newMiddleware(t, memory, nil, byIP("streams", two), ratelimit.Policy{Name: "api", Key: apiKey, Limit: hourly}).Handler(ok)
	for range 5 {
		if w := record(h, withKeys("guess")); w.Code != http.StatusUnauthorized {
			t.Fatalf("got %d, want 401", w.Code)
		}
	}
}

// TestLeakyAndConcurrent: a request that waits in a leaky bucket would hold the concurrent limit.
func TestLeakyAndConcurrent(t *testing.T) {
	_, err := ratelimit.New(newMemory(t), nil, byIP("queue", perSecond), byIP("streams", two))
	checkLines(t, err, []string{"leaky-bucket & concurrent & cannot be in one Middleware"})
}

// TestOverridesAreValidated: an override cannot have a limit that New would refuse.
func TestOverridesAreValidated(t *testing.T) {
	table, memory := overrides.NewMemory(), newMemory(t)
	failing := byIP("tokens", daily)
	failing.ChargeIf = func(int) bool { return true }
	m := newMiddleware(t, memory, &ratelimit.Options{Overrides: table, Logger: quiet}, failing)
	for _, l := range []algorithms.Limit{two, perSecond} {
		if err := table.Set(context.Background(), "tokens", "ip=192.0.2.1", ratelimit.Override{Limit: l}); err != nil {
			t.Fatal(err)
		}
		if v := check(t, m, from("192.0.2.1")); v.Policies[0].Limit != daily {
			t.Errorf("got limit %v, want the policy's own", v.Policies[0].Limit)
		}
	}
}
