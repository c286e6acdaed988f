// Any calls of takes, pairs and trials, valid or not.

package algorithms_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// FuzzCallsWithPairs: an invalid call changes nothing, a denied call charges no take, and a call that proceeds charges each
// take that is not in a pair, and of a pair what its op says. No key exceeds twice its burst.
func FuzzCallsWithPairs(f *testing.F) {
	f.Add([]byte{2, 0, 0, 3, 1, 1, 2})
	f.Add([]byte{3, 0, 0, 5, 2, 1, 4, 0, 2, 1})
	f.Add([]byte{3, 0, 0, 9, 1, 1, 9, 4, 2, 1, 2, 0, 3, 2, 1, 3, 1})
	limits := []algorithms.Limit{
		algorithms.TokenBucket(5, time.Minute), algorithms.FixedWindow(5, time.Minute), algorithms.SlidingWindowLog(5, time.Minute),
		algorithms.Concurrent(5, time.Minute), algorithms.Nobody(),
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		clock := newClock()
		limiter := algorithms.NewMemory(&algorithms.MemoryOptions{Now: clock.now})
		used := func(c algorithms.Check) algorithms.Decision {
			peek := []algorithms.Check{{Policy: c.Policy, Key: c.Key, Limit: c.Limit}}
			if err := limiter.Allow(context.Background(), peek); err != nil {
				t.Fatal(err)
			}
			return peek[0].Decision
		}
		for len(data) > 0 {
			n := 1 + int(data[0]%6)
			clock.add(time.Duration(data[0]/6) * time.Second)
			data = data[1:]
			var checks []algorithms.Check
			var before []algorithms.Decision
			for ; n > 0 && len(data) >= 3; n, data = n-1, data[3:] {
				key := int(data[1]) % 8 // each has one limit
				checks = append(checks, algorithms.Check{
					Policy: "p", Key: fmt.Sprint(key), Limit: limits[key%len(limits)], Op: algorithms.Op(data[0] % 5), Cost: int64(data[2] % 8),
				})
				before = append(before, used(checks[len(checks)-1]))
			}
			if len(checks) == 0 {
				return
			}
			err := limiter.Allow(context.Background(), checks)
			if err != nil && !errors.Is(err, algorithms.ErrInvalid) {
				t.Fatal(err)
			}
			for i, c := range checks {
				if after := used(c); err != nil && after != before[i] {
					t.Fatalf("%v, check %d: got %+v after %v, want %+v", checks, i, after, err, before[i])
				} else if after.Remaining < 0 || after.UnitAfter > 2*time.Minute && c.Limit != algorithms.Nobody() {
					t.Fatalf("%v, check %d: got %+v, want at most twice the burst in use", checks, i, after)
				}
				if err == nil {
					checkCharge(t, checks, i)
				}
			}
		}
	})
}

// checkCharge wants that a check of a decided call was charged as its op says.
func checkCharge(t *testing.T, checks []algorithms.Check, i int) {
	t.Helper()
	c := checks[i]
	want := algorithms.Allowed(checks)
	switch {
	case c.Op == algorithms.Trial || c.Op == algorithms.TrialInstead:
		return
	case c.Op == algorithms.TakeElse:
		want = want && !checks[i-1].Decision.Allowed
	case i+1 < len(checks) && (checks[i+1].Op == algorithms.TakeElse || checks[i+1].Op == algorithms.TakeReserved):
		want = want && c.Decision.Allowed
	}
	if got := c.Decision.Receipt.Units(); got != c.Cost && want || got > 0 && !want {
		t.Fatalf("%v, check %d: got %d units charged, want charged %t", checks, i, got, want)
	}
}
