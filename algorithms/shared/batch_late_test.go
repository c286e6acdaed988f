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

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

func TestFloor(t *testing.T) {
	const second = 1_000_000
	type seen struct{ at, offset int64 } // at in seconds
	tests := map[string]struct {
		seen    []seen
		now     int64
		want    int64
		replace bool // by the last one
	}{
		"nothing":                        {nil, 3, unknown, false},
		"one":                            {[]seen{{1, 70}}, 3, 70, false},
		"the least":                      {[]seen{{1, 70}, {2, 50}, {3, 90}}, 3, 50, false},
		"the least of the time before":   {[]seen{{1, 50}, {7, 90}}, 10, 50, false},
		"a least that is too old":        {[]seen{{1, 50}, {7, 90}, {13, 80}}, 13, 80, false},
		"none for ten seconds":           {[]seen{{1, 50}}, 11, unknown, false},
		"none for five to ten":           {[]seen{{1, 50}}, 10, 50, false},
		"before this process began":      {[]seen{{-20, -50}}, -19, -50, false},
		"a clock that stepped forward":   {[]seen{{1, 50}, {2, 5_000_050}}, 2, 5_000_050, true},
		"a clock that stepped back":      {[]seen{{1, 50}, {2, -5_000_000}}, 2, -5_000_000, false},
		"none is older than ten seconds": {[]seen{{1, 50}, {10, 90}}, 14, 90, false},
		"a long silence, and then a one": {[]seen{{1, 50}, {100, 60}}, 100, 60, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var f floor
			for i, s := range tt.seen {
				if tt.replace && i == len(tt.seen)-1 {
					f.replace(s.at*second, s.offset)
					continue
				}
				f.observe(s.at*second, s.offset)
			}
			if got := f.at(tt.now * second); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// A Redis that stalls executes no script later than 100 ms after its caller
// gave up, and charges each script once.
func TestStalledRedisExecutesNothingLate(t *testing.T) {
	t.Parallel()
	stalls := map[string]time.Duration{"200ms": 200 * time.Millisecond, "1s": time.Second, "5s": 5 * time.Second, "20s": 20 * time.Second}
	if testing.Short() {
		delete(stalls, "5s")
		delete(stalls, "20s")
	}
	atOnce(t, stalls, func(t *testing.T, stall time.Duration) {
		server := redistest.Start(t)
		limiter := must(t, server.Client(), nil)
		w := &witnesses{limiter: limiter, limit: algorithms.TokenBucket(10, 1_000*time.Hour), every: stall / 1_000}
		w.ask(t, 8)
		redistest.Until(t, "Redis decides", func() bool { return w.count(algorithms.Shared) > 100 })
		trip := leastTrip(limiter)
		redistest.Until(t, "no script is under way that was sent before", func() bool { return w.count(algorithms.Shared) > 200 })
		skew, stopped := limiter.fallback.skew.Load(), time.Now()
		server.Stop()
		time.Sleep(stall) // the length of the fault
		server.Continue()
		redistest.Until(t, "Redis decides again", func() bool {
			s := limiter.Stats().Fallback
			return !s.Open && s.Owed == 0 && limiter.redis.underWay() == 0 && w.sharedAfter(time.Now().Add(-50*time.Millisecond))
		})
		w.leave()
		// A hand-back has the instant of its charge by the clock of a beat, which is late by the beat's trip.
		slowest := max(trip, time.Duration(max(skew, limiter.fallback.skew.Load()))*time.Microsecond)
		abandoned, executed := 0, 0
		texts := w.stored(t, server)
		for i, one := range w.all {
			at, units := bucketOf(t, one.key, texts[i])
			switch {
			case one.decision.Source == algorithms.Shared:
				if units != 1 {
					t.Errorf("%s: Redis holds %d units, want the admitted one", one.key, units)
				}
			case units > 1:
				t.Errorf("%s: Redis holds %d units, want at most one", one.key, units)
			case units == 1:
				executed++
				if late := at.Sub(one.answered); one.answered.After(stopped) && late > scriptSlack+slowest+time.Millisecond {
					t.Errorf("%s: executed %v after its caller gave up; a trip takes %v", one.key, late, slowest)
				}
			default:
				abandoned++
			}
		}
		t.Logf("%d callers were answered without Redis and not charged; %d units were handed back or executed in time", abandoned, executed)
		if abandoned == 0 {
			t.Error("no call was abandoned")
		}
	})
}

// leastTrip returns how long a script took to Redis at least in the last seconds.
// Redis has this machine's clock.
func leastTrip(l *Limiter) time.Duration {
	lane := l.redis.lane(0)
	lane.mu.Lock()
	defer lane.mu.Unlock()
	return time.Duration(lane.clocks.lane.at(monotonic())-started.UnixMicro()) * time.Microsecond
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

// stored returns the instant and the units of a bucket in Redis.
func stored(t *testing.T, server *redistest.Server, key string) (at time.Time, units int64) {
	t.Helper()
	return bucketOf(t, key, server.Client().Get(t.Context(), bucketKey(key)).Val())
}

// bucketKey returns the stored key of a bucket.
func bucketKey(key string) string { return "penstock:{" + key + "}:default:tb" }

// bucketOf returns the instant and the units of a stored bucket.
func bucketOf(t *testing.T, key, text string) (at time.Time, units int64) {
	t.Helper()
	if text == "" {
		return time.Time{}, 0
	}
	instant, n, ok := strings.Cut(text, ":")
	if !ok {
		instant, n = text[:len(text)-3], text[len(text)-3:]
	}
	n, _, _ = strings.Cut(n, ":")
	micros, err := strconv.ParseInt(instant, 10, 64)
	if err != nil {
		t.Fatalf("%s: %q: %v", key, text, err)
	}
	units, err = strconv.ParseInt(strings.TrimLeft(n, "0"), 10, 64)
	if err != nil {
		t.Fatalf("%s: %q: %v", key, text, err)
	}
	return time.UnixMicro(micros), units
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
	time.Sleep(2*scriptSlack + 50*time.Millisecond) // the length of the fault
	server.Continue()
	redistest.Until(t, "the return is executed", func() bool { return r.redis.underWay() == 0 })
	if got := take(t, newRedis(t, server.Client(), nil), "usr=1", limit, 0).Remaining; got != before+4 {
		t.Errorf("got %d remaining, want %d", got, before+4)
	}
}

// A caller with a deadline of its own gives up by then, and so does the script.
func TestOwnDeadlineIsTheScripts(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	limiter := must(t, server.Client(), &Options{Deadline: 2 * time.Second})
	limit := algorithms.TokenBucket(10, 1_000*time.Hour)
	redistest.Until(t, "Redis decides", func() bool { return take(t, limiter, "usr=before", limit, 0).Source == algorithms.Shared })
	server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := algorithms.Allow(ctx, limiter, "usr=1", limit); err == nil {
		t.Fatal("a stopped Redis answered")
	}
	time.Sleep(4 * scriptSlack) // the length of the fault
	server.Continue()
	redistest.Until(t, "the script has ended", func() bool { return limiter.redis.underWay() == 0 })
	if at, units := stored(t, server, "usr=1"); units > 0 {
		t.Errorf("charged %d at %v, long after its caller gave up", units, at)
	}
}

// A reply that comes after its callers gave up would make the next deadlines late, too,
// if no other reply is known.
func TestLateAnswerSaysNothingOfTheClock(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	limit := algorithms.TokenBucket(10, time.Hour)
	take(t, must(t, server.Client(), nil), "usr=1", limit, 1) // Redis knows the script
	proxy := redistest.StartProxy(t, server.Addr())
	proxy.Set(redistest.DelayRequests(300 * time.Millisecond).Containing("evalsha"))
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	limiter := must(t, client, nil)
	known := func() bool {
		lane := limiter.redis.lane(0)
		lane.mu.Lock()
		defer lane.mu.Unlock()
		return lane.clocks.lane.at(monotonic()) != unknown
	}
	if d := take(t, limiter, "usr=1", limit, 1); d.Source != algorithms.Local {
		t.Fatalf("got %+v, want a local decision", d)
	}
	redistest.Until(t, "the reply was read", func() bool { return limiter.redis.underWay() == 0 })
	if known() {
		t.Error("a late reply counts as the best that is known")
	}
	proxy.Set(redistest.Pass())
	redistest.Until(t, "Redis decides", func() bool { return take(t, limiter, "usr=1", limit, 0).Source == algorithms.Shared })
	if !known() {
		t.Error("no reply counts")
	}
}
