// Scripts that come to Redis after their callers have given up.

package shared

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A Redis that stalls charges each call at most once, however late: calls in its sockets when it resumes, and others by a
// hand-back. So no admitted unit counts twice, and all count, except at most the lost and unknown ones.
func TestStalledRedisChargesOnce(t *testing.T) {
	t.Parallel()
	wantStalledRedisChargesOnce(t, 200*time.Millisecond, time.Second)
}

func TestLongStalledRedisChargesOnce(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	wantStalledRedisChargesOnce(t, 5*time.Second, 20*time.Second)
}

func wantStalledRedisChargesOnce(t *testing.T, stalls ...time.Duration) {
	t.Helper()
	byName := make(map[string]time.Duration)
	for _, stall := range stalls {
		byName[stall.String()] = stall
	}
	atOnce(t, byName, func(t *testing.T, stall time.Duration) {
		server := redistest.Start(t)
		limiter := must(t, server.Client(), nil)
		w := &witnesses{limiter: limiter, limit: algorithms.TokenBucket(10, 1_000*time.Hour), every: stall / 1_000}
		w.ask(t, 8)
		redistest.Until(t, "Redis decides", func() bool { return w.count(algorithms.Shared) > 100 })
		server.Stop()
		time.Sleep(stall) // the length of the fault
		server.Continue()
		redistest.Until(t, "Redis decides again", func() bool {
			s := limiter.Stats().Fallback
			return s.Open == 0 && s.Owed == 0 && limiter.redis.underWay() == 0 && w.sharedAfter(time.Now().Add(-50*time.Millisecond))
		})
		w.leave()
		if w.count(algorithms.Local) == 0 {
			t.Error("no call was admitted without Redis")
		}
		s, missing := limiter.Stats().Fallback, int64(0)
		for i, text := range w.stored(t, server) {
			one := w.all[i]
			switch units := unitsOf(t, one.key, text); {
			case units == 0 && one.decision.Source == algorithms.Local:
				missing++
			case units != 1:
				t.Errorf("%s, answered by %v: Redis holds %d units, want the admitted one", one.key, one.decision.Source, units)
			}
		}
		t.Logf("Redis lacks %d units; %d are lost, and %d unknown %+v", missing, s.Lost, s.Unknown, s)
		if s.Unknown < 0 || missing > int64(s.Lost)+s.Unknown {
			t.Errorf("Redis lacks %d units, want at most the %d lost and the %d unknown ones", missing, s.Lost, s.Unknown)
		}
	})
}

// Witnesses take one unit each of a key of their own, and remember when they were
// answered.
type witnesses struct {
	limiter *Limiter
	limit   algorithms.Limit
	every   time.Duration // of each caller, at least 2 ms
	stop    chan struct{}
	callers sync.WaitGroup

	mu  sync.Mutex
	all []witness
}

type witness struct {
	key      string
	decision algorithms.Decision
	answered time.Time
}

func (w *witnesses) ask(t *testing.T, n int) {
	w.stop = make(chan struct{})
	for g := range n {
		w.callers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-w.stop:
					return
				case <-time.After(max(2*time.Millisecond, w.every)):
				}
				key := fmt.Sprintf("usr=%d-%d", g, i)
				d, err := algorithms.Allow(context.Background(), w.limiter, key, w.limit)
				if err != nil || !d.Allowed {
					t.Errorf("%s: got %+v, %v", key, d, err)
				}
				w.mu.Lock()
				w.all = append(w.all, witness{key, d, time.Now()})
				w.mu.Unlock()
			}
		})
	}
}

func (w *witnesses) leave() {
	close(w.stop)
	w.callers.Wait()
}

func (w *witnesses) count(source algorithms.Source) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.all {
		if one.decision.Source == source {
			n++
		}
	}
	return n
}

func (w *witnesses) sharedAfter(then time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.all[len(w.all)-1]
	return last.answered.After(then) && last.decision.Source == algorithms.Shared
}

// stored returns the buckets that Redis stores for all witnesses, "" for none. One command per bucket would take longer
// than the stall.
func (w *witnesses) stored(t *testing.T, server *redistest.Server) (texts []string) {
	t.Helper()
	for some := range slices.Chunk(w.all, 1_000) {
		var keys []string
		for _, one := range some {
			keys = append(keys, bucketKey(one.key))
		}
		values, err := server.Client().MGet(t.Context(), keys...).Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range values {
			text, _ := value.(string)
			texts = append(texts, text)
		}
	}
	return texts
}

// bucketKey returns the stored key of a bucket.
func bucketKey(key string) string { return "penstock:{" + key + "}:default:tb" }

// unitsOf returns the units of a stored bucket.
func unitsOf(t *testing.T, key, text string) int64 {
	t.Helper()
	if text == "" {
		return 0
	}
	_, n, ok := strings.Cut(text, ":")
	if !ok {
		n = text[len(text)-3:]
	}
	n, _, _ = strings.Cut(n, ":")
	units, err := strconv.ParseInt(strings.TrimLeft(n, "0"), 10, 64)
	if err != nil {
		t.Fatalf("%s: %q: %v", key, text, err)
	}
	return units
}

// Settlements of a stall are executed when it ends, however late: a unit that is
// returned stays returned.
func TestStalledRedisSettlesLate(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r := newRedis(t, server.Client(), &Options{Deadline: 50 * time.Millisecond})
	limit := algorithms.FixedWindow(10, 1_000*time.Hour)
	check := algorithms.Check{Policy: "default", Key: "usr=1", Limit: limit, Cost: 4}
	redistest.Until(t, "Redis admits it", func() bool {
		checks := []algorithms.Check{check}
		err := r.Allow(t.Context(), checks)
		check.Decision = checks[0].Decision
		return err == nil
	})
	before := take(t, newRedis(t, server.Client(), nil), "usr=1", limit, 0).Remaining
	server.Stop()
	check.Op = algorithms.Return
	if err := r.Allow(t.Context(), []algorithms.Check{check}); err == nil {
		t.Fatal("a stopped Redis answered")
	}
	time.Sleep(250 * time.Millisecond) // the length of the fault
	server.Continue()
	redistest.Until(t, "the return is executed", func() bool {
		return r.redis.underWay() == 0 && take(t, newRedis(t, server.Client(), nil), "usr=1", limit, 0).Remaining != before
	})
	if got := take(t, newRedis(t, server.Client(), nil), "usr=1", limit, 0).Remaining; got != before+4 {
		t.Errorf("got %d remaining, want %d", got, before+4)
	}
}
