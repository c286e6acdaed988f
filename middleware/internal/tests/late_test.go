package tests

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

var daily = algorithms.TokenBucket(100, 24*time.Hour)

// lateByIP reserves some units, and learns later how many it costs.
func lateByIP(name string, l algorithms.Limit, reserves int64) ratelimit.Policy {
	p := byIP(name, l)
	p.Cost = costOf(reserves)
	return p
}

// settling tells totals, one after the other, and wants no error.
func settling(t *testing.T, policy string, totals ...int64) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		for _, total := range totals {
			if err := ratelimit.Settle(r.Context(), total, policy); err != nil {
				t.Errorf("Settle(%d): %v", total, err)
			}
		}
	}
}

// TestSettle: Settle may report totals in any order; the largest is charged in the end.
func TestSettle(t *testing.T) {
	tests := []struct {
		name   string
		totals []int64
		want   int64 // that is left of 100
	}{
		{"nothing told", nil, 90},
		{"less", []int64{4}, 96},
		{"nothing used", []int64{0}, 100},
		{"just that", []int64{10}, 90},
		{"more", []int64{25}, 75},
		{"more and more", []int64{3, 10, 12, 30}, 70},
		{"twice", []int64{25, 25}, 75},
		{"shrinking", []int64{25, 5}, 75},
		{"shrinking below the reservation", []int64{6, 2}, 94},
		{"into debt", []int64{130}, 0},
		{"into debt without end", []int64{1 << 40}, 0},
	}
	for _, limit := range []algorithms.Limit{
		daily, algorithms.SlidingWindowCounter(100, 24*time.Hour), algorithms.SlidingWindowLog(100, 24*time.Hour),
		algorithms.FixedWindow(100, 24*time.Hour),
	} {
		for _, tt := range tests {
			t.Run(fmt.Sprint(limit.Algorithm(), "/", tt.name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					memory, p := newStill(t), lateByIP("tokens", limit, 10)
					record(newMiddleware(t, memory, nil, p).Handler(settling(t, "tokens", tt.totals...)), from("192.0.2.1"))
					synctest.Wait()
					if got := left(t, memory, p, "ip=192.0.2.1"); got != tt.want {
						t.Errorf("got %d left, want %d", got, tt.want)
					}
				})
			})
		}
	}
}

// TestSettleWhileStreaming: units beyond the reservation are charged at once, and the unused rest goes back at the end.
func TestSettleWhileStreaming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, p := newStill(t), lateByIP("tokens", daily, 10)
		h := newMiddleware(t, memory, nil, p).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, step := range []struct{ total, left int64 }{{5, 90}, {10, 90}, {17, 83}, {40, 60}} {
				settling(t, "tokens", step.total)(w, r)
				synctest.Wait()
				if got := left(t, memory, p, "ip=192.0.2.1"); got != step.left {
					t.Errorf("got %d left after %d were used, want %d", got, step.total, step.left)
				}
			}
		}))
		record(h, from("192.0.2.1"))
		synctest.Wait()
		if got := left(t, memory, p, "ip=192.0.2.1"); got != 60 {
			t.Errorf("got %d left at the end, want 60", got)
		}
	})
}

// TestSettleIsHonest: a client in debt receives the end of the debt, to the microsecond.
func TestSettleIsHonest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newMemory(t)
		p := lateByIP("tokens", algorithms.TokenBucket(100, time.Second), 10)
		m := newMiddleware(t, memory, nil, p)
		record(m.Handler(settling(t, "tokens", 150)), from("192.0.2.1"))
		synctest.Wait()
		v, err := m.Check(from("192.0.2.1"))
		if err != nil || v.Allowed || v.RetryAfter != 600*ms { // 150 + 10 - 100 units of 10 ms
			t.Fatalf("got %+v, %v; want a wait of 600 ms", v, err)
		}
		time.Sleep(v.RetryAfter - time.Microsecond)
		if v, _ := m.Check(from("192.0.2.1")); v.Allowed {
			t.Error("allowed a microsecond early")
		}
		time.Sleep(time.Microsecond)
		if v, _ := m.Check(from("192.0.2.1")); !v.Allowed {
			t.Errorf("got %+v, want it allowed after the wait", v)
		}
	})
}

// TestSettleErrors: a settlement that is impossible is an error, and has no effect.
func TestSettleErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, p, plain := newStill(t), lateByIP("tokens", daily, 10), byIP("plain", daily)
		skipped := lateByIP("skipped", daily, 10)
		skipped.Skip = func(*http.Request) bool { return true }
		var ctx context.Context
		outcome := byIP("outcome", daily)
		outcome.ChargeIf = func(int) bool { return true }
		h := newMiddleware(t, memory, nil, p, plain, skipped, outcome).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			ctx = r.Context()
			for _, name := range []string{"plain", "skipped", "outcome", "nonsense", ""} {
				if err := ratelimit.Settle(ctx, 50, name); !errors.Is(err, ratelimit.ErrNotSettled) {
					t.Errorf("%q: got %v, want ErrNoReservation", name, err)
				}
			}
			if err := ratelimit.Settle(ctx, -1, "tokens"); !errors.Is(err, ratelimit.ErrNotSettled) {
				t.Errorf("got %v, want ErrNegativeTotal", err)
			}
			if err := ratelimit.Settle(context.Background(), 50, "tokens"); !errors.Is(err, ratelimit.ErrNotSettled) {
				t.Errorf("elsewhere: got %v, want ErrNoReservation", err)
			}
		}))
		record(h, from("192.0.2.1"))
		if err := ratelimit.Settle(ctx, 50, "tokens"); !errors.Is(err, ratelimit.ErrNotSettled) {
			t.Errorf("after the end: got %v, want ErrSettled", err)
		}
		synctest.Wait()
		for _, p := range []ratelimit.Policy{p, plain, outcome} {
			if got, want := left(t, memory, p, "ip=192.0.2.1"), 100-costOfPolicy(p); got != want {
				t.Errorf("%s: got %d left, want %d", p.Name, got, want)
			}
		}
	})
}

func costOfPolicy(p ratelimit.Policy) int64 {
	if p.Cost == nil {
		return 1
	}
	return p.Cost(nil)
}

// TestSettleOfEachOther: of several policies, and of several middlewares, each is settled by its own name.
func TestSettleOfEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newStill(t)
		tokens, bytes, seconds := lateByIP("tokens", daily, 10), lateByIP("bytes", daily, 20), lateByIP("seconds", daily, 5)
		inner := newMiddleware(t, memory, nil, seconds).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			settling(t, "seconds", 2)(w, r)
			settling(t, "bytes", 33)(w, r)
			settling(t, "tokens", 1)(w, r)
			if v, ok := ratelimit.FromContext(r.Context()); !ok || v.Policies[0].Name != "seconds" {
				t.Errorf("got verdict %+v, want the verdict of seconds", v)
			}
		}))
		record(newMiddleware(t, memory, nil, tokens, bytes).Handler(inner), from("192.0.2.1"))
		synctest.Wait()
		for _, tt := range []struct {
			p    ratelimit.Policy
			want int64
		}{{tokens, 99}, {bytes, 67}, {seconds, 98}} {
			if got := left(t, memory, tt.p, "ip=192.0.2.1"); got != tt.want {
				t.Errorf("%s: got %d left, want %d", tt.p.Name, got, tt.want)
			}
		}
	})
}

// TestSettleTrials: a shadow and a candidate count like the live limit, but only requests that they admitted.
func TestSettleTrials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newStill(t)
		candidate := algorithms.TokenBucket(200, 24*time.Hour)
		live := lateByIP("tokens", daily, 10)
		live.Candidate = &candidate
		shadow := lateByIP("shadow", algorithms.TokenBucket(15, 24*time.Hour), 10)
		shadow.Shadow = true
		h := newMiddleware(t, memory, nil, live, shadow).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			settling(t, "tokens", 30)(w, r)
			_ = ratelimit.Settle(r.Context(), 12, "shadow") // there is nothing to settle if it denied
		}))
		for range 2 {
			record(h, from("192.0.2.1"))
			synctest.Wait()
		}
		trial := live
		trial.Name, trial.Limit = "tokens~candidate", candidate
		for _, tt := range []struct {
			p    ratelimit.Policy
			want int64
		}{{live, 40}, {trial, 140}, {shadow, 3}} {
			if got := left(t, memory, tt.p, "ip=192.0.2.1"); got != tt.want {
				t.Errorf("%s: got %d left, want %d", tt.p.Name, got, tt.want)
			}
		}
	})
}

// TestSettleConcurrently: goroutines of a request may settle at once, and while it ends.
func TestSettleConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, p := newStill(t), lateByIP("tokens", daily, 10)
		var tellers sync.WaitGroup
		h := newMiddleware(t, memory, nil, p).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var first sync.WaitGroup
			for i := range 50 {
				first.Go(func() { settling(t, "tokens", int64(i))(w, r) })
			}
			first.Wait()
			for range 4 {
				tellers.Go(func() { _ = ratelimit.Settle(r.Context(), 49, "tokens") }) // some too late
			}
		}))
		record(h, from("192.0.2.1"))
		tellers.Wait()
		synctest.Wait()
		if got := left(t, memory, p, "ip=192.0.2.1"); got != 51 {
			t.Errorf("got %d left, want 51", got)
		}
	})
}

// TestSettlingIsValidated: New reports all limits that cannot be settled.
func TestSettlingIsValidated(t *testing.T) {
	all := func(int) bool { return true }
	leaky := algorithms.LeakyBucket(10, time.Second)
	tests := []struct {
		name  string
		p     ratelimit.Policy
		wants []string
	}{
		{"a leaky candidate", ratelimit.Policy{ChargeIf: all, Candidate: &leaky}, []string{"a leaky-bucket limit and ChargeIf cannot be combined"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.p.Name, tt.p.Key, tt.p.Limit = "p", keyfunc.IP(nil), daily
			_, err := ratelimit.New(newMemory(t), nil, tt.p)
			checkLines(t, err, tt.wants)
		})
	}
}

// TestSettleUnderTheLimitInForce: after an Update, an override or a tier; under the old limit if the policy is gone.
func TestSettleUnderTheLimitInForce(t *testing.T) {
	large, larger := algorithms.TokenBucket(1_000, 24*time.Hour), algorithms.TokenBucket(5_000, 24*time.Hour)
	candidate := algorithms.TokenBucket(300, 24*time.Hour)
	table := overrides.NewMemory()
	plain := lateByIP("tokens", daily, 10)
	updated, tiered, tried, gone := plain, plain, plain, lateByIP("others", large, 10)
	updated.Limit = large
	windowed := plain
	windowed.Limit = algorithms.FixedWindow(100, 24*time.Hour)
	tiered.Key, tiered.Tiers = planKey, map[string]algorithms.Limit{"pro": larger}
	tried.Candidate = &candidate
	candidateNow := tried
	candidateNow.Candidate = &large
	tests := []struct {
		name          string
		before, after ratelimit.Policy
		total         int64
		override      algorithms.Limit
		want          []algorithms.Limit // of the settlements: the live one's, and the candidate's
	}{
		{"nothing changes", plain, plain, 30, algorithms.Limit{}, []algorithms.Limit{daily}},
		{"less, updated", plain, updated, 5, algorithms.Limit{}, []algorithms.Limit{large}},
		{"another algorithm", plain, windowed, 30, algorithms.Limit{}, []algorithms.Limit{windowed.Limit}},
		{"less, another algorithm", plain, windowed, 5, algorithms.Limit{}, []algorithms.Limit{daily}},
		{"updated", plain, updated, 30, algorithms.Limit{}, []algorithms.Limit{large}},
		{"of a tier", tiered, tiered, 30, algorithms.Limit{}, []algorithms.Limit{larger}},
		{"a tier that is gone", tiered, updated, 30, algorithms.Limit{}, []algorithms.Limit{large}},
		{"overridden", tiered, updated, 30, candidate, []algorithms.Limit{candidate}},
		{"with a candidate", tried, candidateNow, 30, algorithms.Limit{}, []algorithms.Limit{daily, large}},
		{"with one that is gone", tried, updated, 30, algorithms.Limit{}, []algorithms.Limit{large, candidate}},
		{"the policy is gone", plain, gone, 30, algorithms.Limit{}, []algorithms.Limit{daily}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				key := "ip=192.0.2.1"
				if tt.before.Key == planKey {
					key = "usr=me"
				}
				l := &spy{Limiter: newStill(t)}
				m := newMiddleware(t, l, &ratelimit.Options{Overrides: table}, tt.before)
				h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if err := m.Update(tt.after); err != nil {
						t.Error(err)
					}
					if (tt.override != algorithms.Limit{}) {
						if err := table.Set(r.Context(), "tokens", key, ratelimit.Override{Limit: tt.override}); err != nil {
							t.Error(err)
						}
					}
					settling(t, "tokens", tt.total)(w, r)
				}))
				record(h, onPlan(from("192.0.2.1"), "pro"))
				synctest.Wait()
				if err := table.Clear(context.Background(), "tokens", key); err != nil {
					t.Error(err)
				}
				var got []algorithms.Limit
				for _, call := range l.calls[1:] {
					got = append(got, call[0].Limit)
				}
				slices.SortFunc(got, func(a, b algorithms.Limit) int { return slices.Index(tt.want, a) - slices.Index(tt.want, b) })
				if !slices.Equal(got, tt.want) {
					t.Errorf("settled under %v, want %v", got, tt.want)
				}
			})
		})
	}
}
