// Late calls of a real Redis that stalls.

package shared

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A patientClient waits for replies for as long as its options say: the limiter
// does not know its type, and so does not shorten its timeouts.
type patientClient struct{ *redis.Client }

// A stalled is one kind of calls that time out while Redis stalls. Each has keys
// of its own.
type stalled struct {
	limit  algorithms.Limit
	fail   algorithms.FailureMode
	leaves time.Duration // the caller's own deadline; 0: none
	spent  bool          // in Redis, and this process does not know
	held   int64         // by Redis, in the end, of each key that it did not answer in time
}

var stalledCalls = map[string]stalled{
	"local":      {limit: algorithms.TokenBucket(10, 9_000*time.Hour), held: 1},
	"window":     {limit: algorithms.FixedWindow(10, 9_000*time.Hour), held: 1},
	"spent":      {limit: algorithms.TokenBucket(10, 9_000*time.Hour), spent: true, held: 10},
	"closed":     {limit: algorithms.TokenBucket(10, 9_000*time.Hour), fail: algorithms.FailClosed},
	"left":       {limit: algorithms.TokenBucket(10, 9_000*time.Hour), leaves: 60 * time.Millisecond},
	"concurrent": {limit: algorithms.Concurrent(10, 9_000*time.Hour)},
}

// When Redis resumes, it executes what has reached its sockets. Admitted calls
// keep that charge, or their units are lost. Refused calls, and calls that are
// not owed, are returned. Nothing stays unknown.
func TestLateCallsOfAStalledRedis(t *testing.T) {
	t.Parallel()
	for kind, s := range stalledCalls {
		t.Run(kind, s.test)
	}
}

func (s stalled) test(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := patientClient{clientOf(t, server.Addr(), func(o *redis.Options) { o.ReadTimeout = time.Minute })}
	l := must(t, client, &Options{Deadline: 100 * time.Millisecond})
	for n := range 20 { // on a busy machine a call may time out before it is sent
		// As many keys as there are batches in flight.
		if s.stall(t, server, l, []string{fmt.Sprint("late=a", n), fmt.Sprint("late=b", n)}) {
			return
		}
	}
	t.Error("no call was sent in a stall")
}

// stall lets calls time out, and compares what Redis holds afterwards. It reports
// whether they and their returns were sent in time.
func (s stalled) stall(t *testing.T, server *redistest.Server, l *Limiter, keys []string) (tried bool) {
	t.Helper()
	other := newRedis(t, server.Client(), nil)
	if s.spent {
		for _, key := range keys {
			take(t, other, key, s.limit, 10)
		}
	}
	redistest.Until(t, "Redis decides, over several connections", func() bool {
		_, decisions := askAll(t.Context(), l, hourly, manyKeys(200))
		for _, d := range decisions {
			if d.Source != algorithms.Shared {
				return false
			}
		}
		return l.redis.underWay() == 0
	})
	server.Stop()
	var callers sync.WaitGroup
	for _, key := range keys {
		callers.Go(func() { s.call(t, l, key) })
	}
	callers.Wait()
	before, sent := l.Stats(), l.redis.underWay() == len(keys)
	server.Continue()
	redistest.UntilEmpty(t, "everything is known and handed back", func() string {
		got, underWay := l.Stats().Fallback, l.redis.underWay()
		if got.Open == 0 && got.Unknown == 0 && got.Owed == 0 && underWay == 0 {
			return ""
		}
		return fmt.Sprintf("got %+v, %d under way", got, underWay)
	})
	held := func() (sum int64) {
		for _, key := range keys {
			sum += used(t, other, key, s.limit)
		}
		return sum
	}
	want := s.held * int64(len(keys))
	failed := func() uint64 { return l.Stats().Fallback.ReturnsLost - before.Fallback.ReturnsLost }
	redistest.UntilEmpty(t, "Redis holds what it should", func() string {
		if got := held(); got != want && failed() == 0 {
			return fmt.Sprintf("it holds %d, want %d", got, want)
		}
		return ""
	})
	unknown, lost := before.Fallback.Unknown, before.Fallback.Lost
	owed := s.fail == algorithms.FailLocal && s.leaves == 0 && s.limit.Step().Row.Owed
	if !owed && unknown != 0 || unknown < 0 {
		t.Errorf("got %d unknown units of calls that are not owed", unknown)
	}
	if s.spent {
		lost += uint64(unknown)
	}
	if got := l.Stats().Fallback; got.Lost != lost {
		t.Errorf("got %+v, want %d units lost", got, lost)
	}
	return sent && failed() == 0 && (!owed || unknown == int64(len(keys)))
}

// call makes a call while Redis stalls.
func (s stalled) call(t *testing.T, l *Limiter, key string) {
	ctx, cancel := context.WithCancel(context.Background())
	if s.leaves > 0 {
		ctx, cancel = context.WithTimeout(context.Background(), s.leaves)
	}
	defer cancel()
	c := checkOf(key, s.limit, 1)
	c.Fail = s.fail
	checks := []algorithms.Check{c}
	switch err := l.Allow(ctx, checks); {
	case s.fail == algorithms.FailClosed && errors.Is(err, algorithms.ErrUnavailable):
	case s.leaves > 0 && errors.Is(err, context.DeadlineExceeded):
	case err != nil || !checks[0].Decision.Allowed || checks[0].Decision.Source != algorithms.Local:
		t.Errorf("%s: got %+v, %v", key, checks[0].Decision, err)
	}
}
