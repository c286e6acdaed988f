package tests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// TestChurn: whatever changes while requests are served, each request returns its units to the limit that it took them
// from. Policies, overrides and their algorithms change all the time; requests end, panic, hang up, settle from other
// goroutines.
func TestChurn(t *testing.T) {
	for name, wrap := range map[string]func(algorithms.Limiter) algorithms.Limiter{
		"alone":  func(l algorithms.Limiter) algorithms.Limiter { return l },
		"shared": sharing,
	} {
		t.Run(name, func(t *testing.T) { churn(t, wrap) })
	}
}

func churn(t *testing.T, wrap func(algorithms.Limiter) algorithms.Limiter) {
	const clients, each = 8, 150
	// Both buckets have one rate: a bucket whose rate has changed takes back only its latest take.
	rates := []algorithms.Limit{
		algorithms.TokenBucket(1e6, time.Hour), algorithms.TokenBucket(1e6, time.Hour).WithBurst(2e6), algorithms.FixedWindow(1e6, time.Hour),
		algorithms.SlidingWindowCounter(1e6, time.Hour), algorithms.SlidingWindowLog(10_000, time.Hour),
	}
	holds := []algorithms.Limit{algorithms.Concurrent(1000, time.Minute), algorithms.Concurrent(2000, 2*time.Minute), rates[0]}
	policies := func(r *rand.Rand) []ratelimit.Policy {
		tokens, outcome, streams := lateByIP("tokens", rates[r.IntN(5)], 5), byIP("outcome", rates[r.IntN(5)]), byIP("streams", holds[r.IntN(2)])
		outcome.ChargeIf = func(int) bool { return false }
		return []ratelimit.Policy{tokens, outcome, streams}
	}
	memory, table, seen := newStill(t), overrides.NewMemory(), ratelimit.ObserverFunc(func(context.Context, ratelimit.Event) {})
	m := newMiddleware(t, wrap(memory), &ratelimit.Options{Overrides: table, Observers: []ratelimit.Observer{seen}, Logger: quiet}, policies(rand.New(rand.NewPCG(1, 1)))...)
	operator := console.New(m)

	handler := m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var told sync.WaitGroup
		told.Go(func() { _ = ratelimit.Settle(r.Context(), 0, "tokens") }) // there may be no reservation: an override is Off
		told.Wait()
		if r.Header.Get("Panic") != "" {
			panic(http.ErrAbortHandler)
		}
	}))
	done, changes := make(chan struct{}), sync.WaitGroup{}
	for i, change := range []func(r *rand.Rand) error{
		func(r *rand.Rand) error { return m.Update(policies(r)...) },
		func(r *rand.Rand) error {
			p, limits := "streams", holds
			if r.IntN(2) == 0 {
				p, limits = []string{"tokens", "outcome"}[r.IntN(2)], rates
			}
			key := []string{ratelimit.Everyone, fmt.Sprintf("ip=192.0.2.%d", 1+r.IntN(clients))}[r.IntN(2)]
			switch r.IntN(4) {
			case 0:
				return table.Clear(context.Background(), p, key)
			case 1:
				return table.Set(context.Background(), p, key, ratelimit.Override{Mode: ratelimit.ModeOff})
			case 2:
				return table.Set(context.Background(), p, key, ratelimit.Override{Mode: ratelimit.ModeShadow})
			default:
				return table.Set(context.Background(), p, key, ratelimit.Override{Limit: limits[r.IntN(len(limits))]})
			}
		},
		func(r *rand.Rand) error {
			_, err := operator.Who(context.Background(), console.Subject{Policy: "tokens", Key: "ip=192.0.2.1"})
			return err
		},
	} {
		changes.Go(func() {
			r := rand.New(rand.NewPCG(2, uint64(i)))
			for {
				select {
				case <-done:
					return
				default:
					if err := change(r); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	var requests sync.WaitGroup
	for c := range clients {
		requests.Go(func() {
			for i := range each {
				r := from(fmt.Sprintf("192.0.2.%d", c+1))
				ctx, hangUp := context.WithCancel(r.Context())
				if i%5 == 0 {
					hangUp()
				}
				if i%7 == 0 {
					r.Header.Set("Panic", "yes")
				}
				func() {
					defer func() { _ = recover() }()
					record(handler, r.WithContext(ctx))
				}()
				hangUp()
			}
		})
	}
	requests.Wait()
	close(done)
	changes.Wait()
	if err := m.Close(context.Background()); err != nil {
		t.Error(err)
	}
	for c := range clients {
		key := fmt.Sprintf("ip=192.0.2.%d", c+1)
		for _, l := range append(rates[:len(rates):len(rates)], holds[0]) {
			for _, policy := range []string{"tokens", "outcome", "streams"} {
				if policy == "streams" && !l.Algorithm().Concurrent() {
					continue // an override has made a rate of it, which is charged
				}
				if got := left(t, memory, byIP(policy, l), key); got != l.Burst() {
					t.Errorf("%s of %s: got %d left of %v, want all", policy, key, got, l)
				}
			}
		}
	}
}
