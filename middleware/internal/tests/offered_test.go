// Tests of how much clients can use of a token bucket, if their requests return units at their end.
//
// Requests arrive at random, as a Poisson process. A denied request does not come again. The tests run in virtual time, with
// fixed seeds. They also check in every interval:
//
//	final costs of the requests admitted in it ≤ burst + rate × time + units taken before the interval and returned in it
//
// Let the balance be all units taken, less all units returned. The requests that are admitted in an interval take units
// there. The units that they return in the interval are no part of their final costs. So
//
//	final costs ≤ growth of the balance + units taken before the interval and returned in it
//
// and it is enough that the balance grows by at most burst + rate × time in every interval. The balance grows only with a
// take. So the ledger compares each take with the least value of balance - rate × time before an earlier take.

package tests

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/middleware"
)

// TestClientsUseWhatTheyOffer: a service reserves 4 000 tokens for each request to a language model. Each request costs
// 1 000. Clients offer 90 % of the limit, and nearly all of it is admitted, however long the answers take.
func TestClientsUseWhatTheyOffer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		answer time.Duration // mean time until the request ends
		want   float64       // least admitted part of the offered cost
	}{
		{time.Second, 0.98},
		{5 * time.Second, 0.98},
		{20 * time.Second, 0.98},
		{time.Minute, 0.94},
	}
	for _, tt := range tests {
		l := &load{
			policy:    lateByIP("tokens", algorithms.TokenBucket(100_000, time.Minute), 4_000),
			perSecond: 1.5, // 90 per minute
			shortest:  tt.answer / 2,
			longest:   tt.answer * 3 / 2,
			cost:      func(*rand.Rand) int64 { return 1_000 },
			report: func(_ http.ResponseWriter, r *http.Request, cost int64) error {
				return ratelimit.Settle(r.Context(), cost)
			},
			warmUp: 5 * time.Minute,
		}
		l.onBothStores(t, tt.answer.String(), time.Hour, 10*time.Minute, func(t *testing.T, u usage) {
			if u.admitted < tt.want*u.offered {
				t.Errorf("got %.1f %% of the offered cost admitted, want at least %.0f %%", 100*u.admitted/u.offered, 100*tt.want)
			}
		})
	}
}

// TestClientsUseALimitOfOutcomes: half of the requests count. The clients send three times the limit, so the requests that
// count would fill it one and a half times. Nearly the whole limit is used.
func TestClientsUseALimitOfOutcomes(t *testing.T) {
	t.Parallel()
	l := &load{
		policy:    byIP("failures", algorithms.TokenBucket(100, time.Second)),
		perSecond: 300,
		shortest:  50 * ms,
		longest:   2 * time.Second,
		cost:      func(random *rand.Rand) int64 { return random.Int64N(2) },
		report: func(w http.ResponseWriter, _ *http.Request, cost int64) error {
			if cost == 1 {
				w.WriteHeader(http.StatusUnauthorized)
			}
			return nil
		},
		warmUp: 10 * time.Second,
	}
	l.policy.ChargeIf = func(status int) bool { return status == http.StatusUnauthorized }
	l.onBothStores(t, "half count", time.Minute, 10*time.Second, func(t *testing.T, u usage) {
		if u.admitted < 0.95*u.limit {
			t.Errorf("got %.1f %% of the limit counted, want at least 95 %%", 100*u.admitted/u.limit)
		}
	})
}

// A load describes the requests of one client. Durations are uniform from shortest to longest.
type load struct {
	policy            ratelimit.Policy
	perSecond         float64 // mean number of requests
	shortest, longest time.Duration
	cost              func(*rand.Rand) int64 // final cost of a request
	report            func(w http.ResponseWriter, r *http.Request, cost int64) error
	warmUp            time.Duration // before the measured span
}

// usage sums up the final costs of the requests that arrive in the measured span.
type usage struct {
	offered, admitted float64
	limit             float64 // rate × span
}

// onBothStores runs the load over a Memory and over a shared limiter, and checks the usage. The spans differ, because round
// trips to Redis take real time.
func (l *load) onBothStores(t *testing.T, name string, inMemory, inRedis time.Duration, check func(*testing.T, usage)) {
	run := func(t *testing.T, limiter algorithms.Limiter, span time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			u := l.run(t, limiter, span)
			t.Logf("offered %.1f %% of the limit, admitted %.1f %%", 100*u.offered/u.limit, 100*u.admitted/u.limit)
			check(t, u)
		})
	}
	t.Run(name+"/memory", func(t *testing.T) {
		t.Parallel()
		run(t, newMemoryWith(t, algorithms.MemoryOptions{Now: time.Now}), inMemory)
	})
	t.Run(name+"/redis", func(t *testing.T) {
		t.Parallel()
		run(t, newOutside(t), inRedis)
	})
}

// run sends the load through a Middleware in virtual time, until all requests have ended.
func (l *load) run(t *testing.T, limiter algorithms.Limiter, span time.Duration) usage {
	m := newMiddleware(t, limiter, &ratelimit.Options{Logger: quiet}, l.policy)
	book, random := newLedger(t, l.policy.Limit), rand.New(rand.NewPCG(1, 0))
	u := usage{limit: float64(l.policy.Limit.Requests()) * span.Seconds() / l.policy.Limit.Window().Seconds()}
	var running sync.WaitGroup
	for start := time.Now(); ; {
		time.Sleep(time.Duration(random.ExpFloat64() / l.perSecond * float64(time.Second)))
		at := time.Since(start)
		if at > l.warmUp+span {
			break
		}
		cost, lasts := l.cost(random), l.shortest+time.Duration(random.Int64N(int64(l.longest-l.shortest)))
		measured := 0.
		if at > l.warmUp {
			measured = float64(cost)
		}
		u.offered += measured
		h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			taken := costOfPolicy(l.policy)
			book.take(taken, measured)
			time.Sleep(lasts)
			book.giveBack(taken - cost)
			if err := l.report(w, r, cost); err != nil {
				t.Error(err)
			}
		}))
		running.Go(func() { record(h, from("192.0.2.1")) })
	}
	running.Wait()
	if err := m.Close(context.Background()); err != nil {
		t.Error(err)
	}
	u.admitted = book.admitted
	return u
}

// A ledger fails its test if an interval admits too much.
type ledger struct {
	*testing.T
	limit algorithms.Limit
	start time.Time

	mu       sync.Mutex
	balance  int64
	least    int64 // of balance - rate × time before a take; in units × µs of the window
	admitted float64
}

func newLedger(t *testing.T, l algorithms.Limit) *ledger {
	return &ledger{T: t, limit: l, start: time.Now()}
}

// take enters the units of a request that has just been admitted, and its measured final cost.
func (b *ledger) take(units int64, measured float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	window, passed := b.limit.Window().Microseconds(), time.Since(b.start).Microseconds()
	b.least = min(b.least, b.balance*window-passed*b.limit.Requests())
	b.balance += units
	b.admitted += measured
	growth := b.balance*window - passed*b.limit.Requests() - b.least
	if above := growth - b.limit.Burst()*window; above > 0 && !b.Failed() {
		b.Errorf("an interval that ends after %v admits %.3f units too many", time.Since(b.start), float64(above)/float64(window))
	}
}

// giveBack enters units that a request is about to return.
func (b *ledger) giveBack(units int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.balance -= units
}

// An outside limiter is a shared limiter for callers in a bubble. It runs outside, because Redis answers in real time. A
// bubble's time stands still while a goroutine of the bubble waits for a channel from outside.
type outside struct {
	mu      sync.Mutex
	clock   *handClock // shows the bubble's time at the last call
	calls   chan []algorithms.Check
	answers chan error
}

// newOutside starts a Redis and a limiter that end with the test. Each call must reach Redis. Call it outside of the bubble.
func newOutside(t *testing.T) *outside { return outsideOf(t, redistest.Start(t).Client()) }

// outsideOf does the same with a client of a Redis.
func outsideOf(t *testing.T, client shared.Client) *outside {
	o := &outside{clock: newHandClock(noon), calls: make(chan []algorithms.Check), answers: make(chan error)}
	l := newShared(t, client, shared.Options{Now: o.clock.now})
	t.Cleanup(func() { close(o.calls) })
	go func() {
		for checks := range o.calls {
			err := l.Allow(context.Background(), checks)
			if source := checks[0].Decision.Source; err != nil || source != algorithms.Shared {
				t.Errorf("got a decision by %v and error %v, want it of Redis", source, err)
			}
			o.answers <- err
		}
	}()
	return o
}

// Allow implements algorithms.Limiter.
func (o *outside) Allow(_ context.Context, checks []algorithms.Check) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clock.ns.Store(time.Now().UnixNano())
	o.calls <- checks
	return <-o.answers
}
