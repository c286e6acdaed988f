// Tests of slots in Retry-After.

package tests

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// nth returns the address of a client.
func nth(i int) string {
	return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).String()
}

// tell returns the Retry-After of a denial.
func tell(t *testing.T, h http.Handler, r *http.Request) int {
	t.Helper()
	w := record(h, r)
	if w.Code/100 < 4 {
		t.Fatalf("got status %d, want a denial", w.Code)
	}
	return retryAfter(t, w.Header())
}

// TestSlotsEndStampedes: of clients that are denied at one instant, no more return in a second than the limit admits.
func TestSlotsEndStampedes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newMiddleware(t, newMemory(t), nil, forAll("all", algorithms.TokenBucket(10, time.Second))).Handler(ok)
		for i := range 10 {
			record(h, from(nth(i)))
		}
		back := map[int]int{}
		for i := range 990 {
			back[tell(t, h, from(nth(i)))]++
		}
		// The honest wait is 100 ms, and the first slot is 100 ms later: 9 slots end in the first second.
		for second := 1; second <= 100; second++ {
			want := 10
			if second == 1 || second == 100 {
				want = map[int]int{1: 9, 100: 1}[second]
			}
			if back[second] != want {
				t.Errorf("got %d clients in second %d, want %d", back[second], second, want)
			}
		}
	})
}

// TestSlotCountsDown: a client keeps its slot until the slot has passed, and the limit then admits it.
func TestSlotCountsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newMiddleware(t, newMemory(t), nil, forAll("all", algorithms.TokenBucket(1, time.Second))).Handler(ok)
		record(h, from(nth(0)))
		tell(t, h, from(nth(1)))
		first := tell(t, h, from(nth(2))) // 1 s, and two places
		if first != 3 {
			t.Errorf("got %d s, want 3", first)
		}
		for second := range 3 {
			if second > 0 { // keeps the limit exhausted
				record(h, from(nth(0)))
			}
			for range 5 {
				if got := tell(t, h, from(nth(2))); got != first-second {
					t.Fatalf("at %d s: got %d s, want %d", second, got, first-second)
				}
			}
			time.Sleep(time.Second)
		}
		if got := record(h, from(nth(2))).Code; got != http.StatusOK {
			t.Errorf("got status %d at the slot, want 200", got)
		}
	})
}

// TestSpreadByKindOfKey: denied clients get slots where all clients share the limit. A policy that counts one client tells
// the true wait once, and then the next free instants. A hidden one always tells the true wait.
func TestSpreadByKindOfKey(t *testing.T) {
	limit := algorithms.TokenBucket(1, 2*time.Second) // the true wait
	honest, line, slots := [2]int{2, 2}, [2]int{2, 4}, [2]int{4, 6}
	custom := keyfunc.Custom("org", func(*http.Request) (string, error) { return "o", nil })
	for name, tt := range map[string]struct {
		policy ratelimit.Policy
		want   [2]int
	}{
		"address":             {ratelimit.Policy{}, line},
		"user":                {ratelimit.Policy{Key: planKey}, line},
		"custom":              {ratelimit.Policy{Key: custom}, line},
		"address and route":   {ratelimit.Policy{Key: keyfunc.Join(keyfunc.IP(nil), keyfunc.Route())}, line},
		"constant":            {ratelimit.Policy{Key: keyfunc.Const("all")}, slots},
		"route":               {ratelimit.Policy{Key: keyfunc.Route()}, slots},
		"constant and route":  {ratelimit.Policy{Key: keyfunc.Join(keyfunc.Const("all"), keyfunc.Route())}, slots},
		"hidden":              {ratelimit.Policy{Key: planKey, Hidden: true}, honest},
		"hidden constant":     {ratelimit.Policy{Key: keyfunc.Const("all"), Hidden: true}, slots},
		"capacity of users":   {ratelimit.Policy{Key: planKey, Capacity: true}, slots},
		"capacity":            {ratelimit.Policy{Key: keyfunc.Const("all"), Capacity: true}, slots},
		"no policy's address": {ratelimit.Policy{Key: keyfunc.Peer()}, line},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.policy.Name, tt.policy.Limit = "p", limit
				h := newMiddleware(t, newMemory(t), nil, tt.policy).Handler(ok)
				record(h, from(nth(1)))
				other := from(nth(2))
				if name == "address" || name == "address and route" || name == "no policy's address" {
					other = from(nth(1)) // another address has a limit of its own
				}
				if got := [2]int{tell(t, h, from(nth(1))), tell(t, h, other)}; got != tt.want {
					t.Errorf("got %v s, want %v", got, tt.want)
				}
			})
		})
	}
}

// TestClientsOwnPolicyNamesIt: the key of the client's own policy tells clients apart, otherwise the address.
func TestClientsOwnPolicyNamesIt(t *testing.T) {
	account := keyfunc.User(func(ctx context.Context) (keyfunc.Identity, bool) {
		id, _ := ctx.Value(planContext{}).(string)
		return keyfunc.Identity{ID: id}, id != ""
	})
	all := forAll("all", algorithms.TokenBucket(1, 2*time.Second))
	plenty := algorithms.TokenBucket(1000, time.Second)
	synctest.Test(t, func(t *testing.T) {
		h := newMiddleware(t, newMemory(t), nil, all, ratelimit.Policy{Name: "account", Key: account, Limit: plenty}).Handler(ok)
		record(h, onPlan(from(nth(1)), "a"))
		for i, want := range []int{4, 4, 4} { // one account, three addresses
			if got := tell(t, h, onPlan(from(nth(i)), "a")); got != want {
				t.Errorf("got %d s for address %d, want %d", got, i, want)
			}
		}
		if got := tell(t, h, onPlan(from(nth(1)), "b")); got != 6 {
			t.Errorf("got %d s for another account, want 6", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		route := ratelimit.Policy{Name: "route", Key: keyfunc.Route(), Limit: plenty} // counts no client
		h := newMiddleware(t, newMemory(t), nil, all, route).Handler(ok)
		record(h, from(nth(0)))
		if got := [2]int{tell(t, h, from(nth(1))), tell(t, h, from(nth(2)))}; got != [2]int{4, 6} {
			t.Errorf("got %v s for two addresses, want 4 and 6", got)
		}
	})
}

// TestVerdictsHaveNoSlots: a verdict has the honest wait.
func TestVerdictsHaveNoSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMiddleware(t, newMemory(t), nil, forAll("all", algorithms.TokenBucket(1, 2*time.Second)))
		check(t, m, from(nth(0)))
		if got := check(t, m, from(nth(1))).RetryAfter; got != 2*time.Second {
			t.Errorf("got %v, want 2s", got)
		}
	})
}

// TestNoSlots: waits that never end and slow limits have no slots. Slots are longer for higher costs.
func TestNoSlots(t *testing.T) {
	for name, tt := range map[string]struct {
		limit algorithms.Limit
		cost  int64
		least int
		most  int
	}{
		"nobody":       {algorithms.Nobody(), 1, -1, -1},
		"above burst":  {algorithms.TokenBucket(1, time.Second), 2, -1, -1},
		"slow":         {algorithms.TokenBucket(1, time.Hour), 1, 3600, 3630},
		"slow by cost": {algorithms.TokenBucket(10, 10*time.Minute), 10, 600, 630},
		"by cost":      {algorithms.TokenBucket(10, 10*time.Second), 10, 20, 20},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := forAll("all", tt.limit)
				p.Cost = costOf(tt.cost)
				h := newMiddleware(t, newMemory(t), nil, p).Handler(ok)
				record(h, from(nth(0)))
				if got := tell(t, h, from(nth(1))); got < tt.least || got > tt.most {
					t.Errorf("got %d s, want %d to %d", got, tt.least, tt.most)
				}
			})
		})
	}
}

// TestJitterWithoutRoomForSlots: clients of a policy that spreads get jitter where there is no slot for them.
func TestJitterWithoutRoomForSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := ratelimit.Policy{Name: "slow", Key: keyfunc.Const("all"), Limit: algorithms.TokenBucket(1, time.Hour)}
		h, told := newMiddleware(t, newMemory(t), nil, p).Handler(ok), map[int]bool{}
		record(h, from(nth(0)))
		for i := range 30 {
			told[tell(t, h, from(nth(i)))] = true
		}
		for seconds := range told {
			if seconds < 3600 || seconds > 3630 {
				t.Errorf("got %d s, want 1 h and up to 30 s", seconds)
			}
		}
		if len(told) < 10 {
			t.Errorf("got %v, want waits that differ", told)
		}
	})
}

// TestGuessesHaveNoSlots: unknown API keys are counted by their address, which is one client's.
func TestGuessesHaveNoSlots(t *testing.T) {
	unknown := keyfunc.APIKey("X-API-Key", func(context.Context, string) (keyfunc.Identity, error) {
		return keyfunc.Identity{}, keyfunc.ErrUnknown
	})
	synctest.Test(t, func(t *testing.T) {
		p := ratelimit.Policy{Name: "p", Key: unknown, Limit: algorithms.TokenBucket(1, 2*time.Second), Capacity: true}
		h := newMiddleware(t, newMemory(t), nil, p).Handler(ok)
		for i := range 20 {
			if got := record(h, with(from(nth(1)), "X-API-Key", fmt.Sprint("guess", i))).Code; got != http.StatusUnauthorized {
				t.Fatalf("got status %d, want 401", got)
			}
		}
		if got := tell(t, h, with(from(nth(1)), "X-API-Key", "guess")); got != 3 {
			t.Errorf("got %d s, want the honest 3", got)
		}
	})
}

// TestConcurrentLimitHasNoSlots: its rate is unknown. Without a request that has ended, the wait is the hold.
func TestConcurrentLimitHasNoSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, p := newMemory(t), forAll("all", algorithms.Concurrent(1, 2*time.Minute))
		held := []algorithms.Check{{Policy: p.Name, Key: "const=all", Limit: p.Limit, Cost: 1}}
		if err := memory.Allow(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		h := newMiddleware(t, memory, nil, p).Handler(ok)
		if got := tell(t, h, from(nth(1))); got != 120 {
			t.Errorf("got %d s, want 120 s", got)
		}
	})
}

// TestSlotsOfInstances: two instances that count together spread their clients over the same time as one.
func TestSlotsOfInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients = 400
		both := instances{newMemory(t), 2}
		p := forAll("all", algorithms.TokenBucket(10, time.Second))
		a, b := newMiddleware(t, both, nil, p).Handler(ok), newMiddleware(t, both, nil, p).Handler(ok)
		for range 10 {
			record(a, from(nth(0)))
		}
		back := map[int]int{}
		for i := range clients / 2 {
			back[tell(t, a, from(nth(2*i)))]++
			back[tell(t, b, from(nth(2*i+1)))]++
		}
		for second, n := range back {
			if second > clients/10+1 || n > 16 {
				t.Errorf("got %d clients in second %d, want about 10 in each of %d", n, second, clients/10)
			}
		}
	})
}

// instances makes a limiter of several instances of a Memory.
type instances struct {
	*algorithms.Memory
	n int
}

func (i instances) Stats() algorithms.Stats {
	s := i.Memory.Stats()
	s.Fallback.Instances = i.n
	return s
}

// Allow decides as Redis would.
func (i instances) Allow(ctx context.Context, checks []algorithms.Check) error {
	err := i.Memory.Allow(ctx, checks)
	for j := range checks {
		checks[j].Decision.Source = algorithms.Shared
	}
	return err
}

// TestSlotsOfConcurrentDenials: clients that are denied at the same time get different slots.
func TestSlotsOfConcurrentDenials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newMiddleware(t, newMemory(t), nil, forAll("all", algorithms.TokenBucket(1, 2*time.Second))).Handler(ok)
		record(h, from(nth(0)))
		var all sync.WaitGroup
		told := make([]int, 40)
		for i := range told {
			all.Go(func() { told[i] = tell(t, h, from(nth(i))) })
		}
		all.Wait()
		slices.Sort(told)
		for i, seconds := range told {
			if want := 4 + 2*i; seconds != want {
				t.Errorf("got slots in %v s, want one in %d s", told, want)
			}
		}
	})
}

// TestSlotsOutlastUpdate: an Update that keeps the policy's name keeps its slots.
func TestSlotsOutlastUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := forAll("all", algorithms.TokenBucket(1, 2*time.Second))
		m := newMiddleware(t, newMemory(t), nil, p)
		h := m.Handler(ok)
		record(h, from(nth(0)))
		before := tell(t, h, from(nth(1)))
		if err := m.Update(p); err != nil {
			t.Fatal(err)
		}
		if got := [2]int{tell(t, h, from(nth(1))), tell(t, h, from(nth(2)))}; got != [2]int{before, before + 2} {
			t.Errorf("got %v s, want %d and %d", got, before, before+2)
		}
	})
}
