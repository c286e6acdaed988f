package algorithms_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
)

// late is a client that answers everything after a while: that it cannot be read.
type late time.Duration

func (l late) Process(ctx context.Context, cmd redis.Cmder) error {
	select {
	case <-time.After(time.Duration(l)):
		cmd.SetErr(errLate)
	case <-ctx.Done():
		cmd.SetErr(ctx.Err())
	}
	return cmd.Err()
}

var errLate = errors.New("WRONGTYPE of this client")

// A server that answers in time, but fewer calls than there are, holds none of
// them for much longer than the Timeout.
func TestNobodyQueuesForLongerThanTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout, took = 50 * time.Millisecond, 45 * time.Millisecond
		var seen events
		r := newRedis(t, late(took), &algorithms.RedisOptions{Timeout: timeout, Observe: seen.add})
		var mu sync.Mutex
		var longest time.Duration
		var answered, unsent int
		var wg sync.WaitGroup
		for _, key := range manyKeys(2_000) {
			wg.Go(func() {
				start := time.Now()
				_, err := algorithms.Allow(context.Background(), r, key, algorithms.TokenBucket(1, time.Hour))
				mu.Lock()
				defer mu.Unlock()
				longest = max(longest, time.Since(start))
				switch {
				case errors.Is(err, errLate):
					answered++
				case errors.Is(err, algorithms.ErrOverloaded):
					unsent++
				default:
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
		if longest > 2*timeout {
			t.Errorf("a call took %v, want at most %v", longest, 2*timeout)
		}
		overloaded := func(e algorithms.Event) bool {
			return e.Kind == algorithms.EventError && e.Class == algorithms.ErrorOverload
		}
		if !slices.ContainsFunc(seen.all(), overloaded) {
			t.Error("nobody was told that calls were not sent")
		}
		// Two batches at a time, of at most 48: those that are sent by 0 and 45 ms.
		if answered < 2*48 || answered > 4*48 || unsent != 2_000-answered {
			t.Errorf("%d calls were answered and %d were not sent, of 2 000", answered, unsent)
		}
	})
}
