// Tests of Settle: which policies it corrects, under which algorithms, and beside ChargeIf.

package tests

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// A book is the units that policies have left after a request.
type book map[string]int64

// wantBook waits for settlements, and compares.
func wantBook(t *testing.T, l algorithms.Limiter, want book, policies ...ratelimit.Policy) {
	t.Helper()
	synctest.Wait()
	for _, p := range policies {
		if got := left(t, l, p, "ip=192.0.2.1"); got != want[p.Name] {
			t.Errorf("%s: got %d left, want %d", p.Name, got, want[p.Name])
		}
	}
}

// settleAll is a handler that settles totals, and wants no error.
func settleAll(t *testing.T, total int64, names ...string) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		if err := ratelimit.Settle(r.Context(), total, names...); err != nil {
			t.Errorf("Settle(%d, %q): %v", total, names, err)
		}
	}
}

// TestSettleNames: the named policies are settled; without names all policies of the request that have a Cost, also those
// of outer Middlewares.
func TestSettleNames(t *testing.T) {
	minute, day := lateByIP("minute", daily, 10), lateByIP("day", daily, 20)
	outer, plain := lateByIP("outer", daily, 30), byIP("plain", daily)
	outcome := byIP("outcome", daily)
	outcome.ChargeIf = func(int) bool { return true }
	for _, tt := range []struct {
		name  string
		total int64
		names []string
		want  book
	}{
		{"Without names, all with a Cost return the rest.", 4, nil, book{"minute": 96, "day": 96, "outer": 96, "plain": 99, "outcome": 99}},
		{"Without names, all with a Cost are charged more.", 50, nil, book{"minute": 50, "day": 50, "outer": 50, "plain": 99, "outcome": 99}},
		{"Without names, each compares with its own reservation.", 20, nil, book{"minute": 80, "day": 80, "outer": 80, "plain": 99, "outcome": 99}},
		{"One name settles one.", 4, []string{"day"}, book{"minute": 90, "day": 96, "outer": 70, "plain": 99, "outcome": 99}},
		{"Two names settle two.", 4, []string{"minute", "outer"}, book{"minute": 96, "day": 80, "outer": 96, "plain": 99, "outcome": 99}},
		{"A name twice settles once.", 15, []string{"minute", "minute"}, book{"minute": 85, "day": 80, "outer": 70, "plain": 99, "outcome": 99}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := newStill(t)
				inner := newMiddleware(t, memory, nil, plain, minute, outcome, day).Handler(settleAll(t, tt.total, tt.names...))
				record(newMiddleware(t, memory, nil, outer).Handler(inner), from("192.0.2.1"))
				wantBook(t, memory, tt.want, minute, day, outer, plain, outcome)
			})
		})
	}
}

// TestSettleInnermost: of two policies of one name, the inner one is settled, with and without its name.
func TestSettleInnermost(t *testing.T) {
	for _, names := range [][]string{nil, {"tokens"}} {
		synctest.Test(t, func(t *testing.T) {
			inside, outside := newStill(t), newStill(t)
			p, q := lateByIP("tokens", daily, 10), lateByIP("tokens", daily, 20)
			inner := newMiddleware(t, inside, &ratelimit.Options{Logger: quiet}, p).Handler(settleAll(t, 30, names...))
			record(newMiddleware(t, outside, nil, q).Handler(inner), from("192.0.2.1"))
			wantBook(t, inside, book{"tokens": 70}, p)
			wantBook(t, outside, book{"tokens": 80}, q)
		})
	}
}

// TestSettleNothing: an error says which policy cannot be settled, and the others are.
func TestSettleNothing(t *testing.T) {
	for _, tt := range []struct {
		name    string
		limit   algorithms.Limit
		settles []string
		errors  []string
	}{
		{"A leaky bucket cannot settle.", algorithms.LeakyBucket(100, time.Hour), nil, []string{`policy "other"`, "neither return nor force"}},
		{"A named leaky bucket cannot settle.", algorithms.LeakyBucket(100, time.Hour), []string{"other", "tokens"}, []string{`policy "other"`, "neither return nor force"}},
		{"A concurrent limit cannot settle.", algorithms.Concurrent(100, time.Minute), nil, []string{`policy "other"`, "neither return nor force"}},
		{"A name that no policy has is an error.", daily, []string{"tokens", "nonsense"}, []string{`policy "nonsense" has no reservation`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory, other, tokens := newStill(t), lateByIP("other", tt.limit, 1), lateByIP("tokens", daily, 10)
				record(newMiddleware(t, memory, nil, other, tokens).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					err := ratelimit.Settle(r.Context(), 3, tt.settles...)
					if !errors.Is(err, ratelimit.ErrNotSettled) {
						t.Errorf("got %v, want ErrNotSettled", err)
					}
					for _, words := range tt.errors {
						if !strings.Contains(fmt.Sprint(err), words) {
							t.Errorf("got %v, want %q in it", err, words)
						}
					}
				})), from("192.0.2.1"))
				wantBook(t, memory, book{"tokens": 97}, tokens)
			})
		})
	}
}

// TestSettleWithoutCost: where no policy has a Cost, Settle without names is an error.
func TestSettleWithoutCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outcome := byIP("outcome", daily)
		outcome.ChargeIf = func(int) bool { return true }
		memory := newStill(t)
		record(newMiddleware(t, memory, nil, byIP("plain", daily), outcome).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if err := ratelimit.Settle(r.Context(), 3); !errors.Is(err, ratelimit.ErrNotSettled) {
				t.Errorf("got %v, want ErrNotSettled", err)
			}
		})), from("192.0.2.1"))
		wantBook(t, memory, book{"outcome": 99}, outcome)
	})
}

// TestSettleBesideACandidate: a candidate whose algorithm cannot settle is no error of the policy.
func TestSettleBesideACandidate(t *testing.T) {
	for _, candidate := range []algorithms.Limit{algorithms.LeakyBucket(100, time.Hour), algorithms.Concurrent(100, time.Minute)} {
		synctest.Test(t, func(t *testing.T) {
			memory, p := newStill(t), lateByIP("tokens", daily, 10)
			p.Candidate = &candidate
			record(newMiddleware(t, memory, nil, p).Handler(settleAll(t, 30)), from("192.0.2.1"))
			wantBook(t, memory, book{"tokens": 70}, p)
		})
	}
}

// TestSettleFromZero: a reservation of 0 is a reservation; all that Settle reports is charged, also to trials.
func TestSettleFromZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, p, shadow := newStill(t), lateByIP("tokens", daily, 0), lateByIP("shadow", daily, 0)
		candidate := algorithms.TokenBucket(200, 24*time.Hour)
		shadow.Shadow, p.Candidate = true, &candidate
		h := newMiddleware(t, memory, nil, p, shadow).Handler(settleAll(t, 30))
		record(h, from("192.0.2.1"))
		trial := p
		trial.Name, trial.Limit = "tokens~candidate", candidate
		wantBook(t, memory, book{"tokens": 70, "shadow": 70, "tokens~candidate": 170}, p, shadow, trial)
	})
}

// TestSettleByContext: any context that was made of the handler's settles, and no other.
func TestSettleByContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, p := newStill(t), lateByIP("tokens", daily, 10)
		record(newMiddleware(t, memory, nil, p).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), planContext{}, "x"), time.Second)
			cancel()
			if err := ratelimit.Settle(context.WithoutCancel(ctx), 30); err != nil {
				t.Errorf("got %v, want none", err)
			}
			if err := ratelimit.Settle(context.Background(), 90); !errors.Is(err, ratelimit.ErrNotSettled) {
				t.Errorf("got %v of another context, want ErrNotSettled", err)
			}
		})), from("192.0.2.1"))
		wantBook(t, memory, book{"tokens": 70}, p)
	})
}

// TestSettleOutcomes: with ChargeIf, an outcome that counts is charged the total, and any other costs nothing.
func TestSettleOutcomes(t *testing.T) {
	for _, limit := range []algorithms.Limit{daily, algorithms.SlidingWindowLog(100, 24*time.Hour), algorithms.FixedWindow(100, 24*time.Hour)} {
		for _, tt := range []struct {
			name   string
			status int
			totals []int64
			took   time.Duration
			want   int64
		}{
			{"It counts.", 500, nil, 0, 90},
			{"It counts less.", 500, []int64{4}, 0, 96},
			{"It counts nothing.", 500, []int64{0}, 0, 100},
			{"It counts more.", 500, []int64{30}, 0, 70},
			{"It counts the largest.", 500, []int64{30, 50, 4}, 0, 50},
			{"It does not count.", 200, nil, 0, 100},
			{"It does not count less.", 200, []int64{4}, 0, 100},
			{"It does not count more.", 200, []int64{30, 60}, 0, 100},
			{"It counts after a while.", 500, nil, time.Hour, 90},
			{"It counts less after a while.", 500, []int64{4}, time.Hour, 96},
			{"It counts nothing after a while.", 500, []int64{0}, time.Hour, 100},
			{"It counts more after a while.", 500, []int64{30}, time.Hour, 70},
		} {
			t.Run(fmt.Sprint(limit.Algorithm(), "/", tt.name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l, p := &spy{Limiter: newStill(t)}, lateByIP("tokens", limit, 10)
					p.ChargeIf = func(status int) bool { return status >= 500 }
					record(newMiddleware(t, l, nil, p).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						for _, total := range tt.totals {
							settleAll(t, total)(w, r)
						}
						synctest.Wait()
						if got := left(t, l.Limiter, p, "ip=192.0.2.1"); got != 90 {
							t.Errorf("got %d left while it is served, want 90: nothing is forced before the outcome", got)
						}
						time.Sleep(tt.took)
						w.WriteHeader(tt.status)
					})), from("192.0.2.1"))
					wantBook(t, l.Limiter, book{"tokens": tt.want}, p)
					if tt.status == 200 && strings.Contains(fmt.Sprint(opsOf(l)), "force") {
						t.Errorf("got %v of an outcome that does not count, want nothing forced", opsOf(l))
					}
				})
			})
		}
	}
}

// opsOf returns the ops of a spy's calls.
func opsOf(l *spy) (ops []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, call := range l.calls {
		for _, c := range call {
			ops = append(ops, c.Op.String())
		}
	}
	return ops
}

// TestPoliciesWithoutCostAllocateNothing for settling, and policies with a cost do.
func TestPoliciesWithoutCostAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	plenty := algorithms.TokenBucket(1e9, time.Second)
	allocs := func(p ratelimit.Policy, next http.Handler) float64 {
		h, w, r := newMiddleware(t, newMemory(t), nil, p).Handler(next), &sink{h: make(http.Header)}, from("192.0.2.1")
		return testing.AllocsPerRun(500, func() { clear(w.h); h.ServeHTTP(w, r) })
	}
	plain, skipped := byIP("p", plenty), byIP("p", plenty)
	skipped.Skip = func(*http.Request) bool { return true }
	least := allocs(skipped, ok)
	var seen any
	got := allocs(plain, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Context() }))
	if settling := allocs(lateByIP("p", plenty, 1), ok); got > 7 || settling <= got {
		t.Errorf("got %v allocations of a plain policy, %v of one with a Cost and %v of none", got, settling, least)
	}
	if strings.Contains(fmt.Sprintf("%T", seen), "Reservations") {
		t.Errorf("got context %T, want none that settles", seen)
	}
}
