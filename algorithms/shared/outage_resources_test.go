// The goroutines, connections and memory that an outage costs.

package shared

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// resources are what the process holds at a time.
type resources struct {
	goroutines, connections int64
	heap                    int64 // bytes
}

// most returns the highest resources at any time within d. The heap is measured
// at the end, between calls: allocations during a collection would count, and a
// collection takes long on a busy machine.
func (p *target) most(d time.Duration, c *callers) (most resources) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		most.goroutines = max(most.goroutines, int64(runtime.NumGoroutine()))
		most.connections = max(most.connections, p.wire.live.Load())
	}
	c.calls.Lock()
	defer c.calls.Unlock()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	most.heap = int64(m.HeapAlloc)
	return most
}

// outageLasts returns how long the outages of the next test last: PENSTOCK_OUTAGE,
// or two seconds.
func outageLasts(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("PENSTOCK_OUTAGE")
	if text == "" {
		return 2 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("PENSTOCK_OUTAGE: %v", err)
	}
	return d
}

// Resource use does not grow with the length of an outage, neither by calls nor
// by probes. Nothing is left in the end. For an outage of a minute:
//
//	PENSTOCK_OUTAGE=60s go test -run TestOutageUsesBoundedResources -v ./algorithms/shared
//
// No other test runs while this one does.
func TestOutageUsesBoundedResources(t *testing.T) {
	longtest.Skip(t)
	const places, crowd = 8, 200
	half := outageLasts(t) / 2
	for _, cause := range outageCauses {
		if cause.name != "stopped" && cause.name != "black hole" && cause.name != "refused" {
			continue
		}
		t.Run(cause.name, func(t *testing.T) {
			p := newTarget(t, cause, func(o *redis.Options) { o.ReadTimeout, o.PoolSize = 300*time.Millisecond, places })
			p.server.Client() // so that it is there before
			before := goleak.IgnoreCurrent()
			limiter := must(t, p.client, nil)
			c := startCallers(t, limiter, crowd, 20*time.Millisecond, nil)
			c.awaitShared()
			well := p.most(100*time.Millisecond, c)

			cause.begin(p)
			c.awaitOpen()
			if cause.name == "refused" {
				redistest.Until(t, "the pool is saturated", func() bool { return p.wire.failed.Load() >= 5*places })
			}
			first, second := p.most(half, c), p.most(half, c)
			t.Logf("well %+v, cause %+v, then %+v", well, first, second)
			// 16 batches that hang, with what go-redis has for each.
			if got := first.goroutines - well.goroutines; got > 100 {
				t.Errorf("%d goroutines more, want at most 100", got)
			}
			// A hand-back is refused each second: it has a goroutine for each of some keys.
			if second.goroutines > first.goroutines+handBackKeys+20 || second.connections > places || second.heap > first.heap+1<<20 {
				t.Errorf("got %+v, and before %+v, want no more and more", second, first)
			}
			cause.end(p)
			c.awaitShared()
			c.dismiss()
			for _, closer := range []interface{ Close() error }{limiter, p.client} {
				if err := closer.Close(); err != nil {
					t.Error(err)
				}
			}
			if p.proxy != nil {
				p.proxy.Close()
			}
			// A pool that is saturated looks once a second whether it is closed.
			leak := goleak.Find(before)
			for end := time.Now().Add(3 * time.Second); leak != nil && time.Now().Before(end); {
				leak = goleak.Find(before)
			}
			if leak != nil {
				t.Errorf("after Close: %v", leak)
			}
		})
	}
}

// A Redis that is slower than the deadline keeps its connections, because each
// dropped connection would cost it a new one. A busy machine opens the circuit late, so
// it has three attempts.
func TestSlowRedisIsNotDialledAgain(t *testing.T) {
	t.Parallel()
	atOnce(t, map[string]bool{"context ignored": false, "context obeyed": true}, func(t *testing.T, obeys bool) {
		got := dialsOfSlowRedis(t, obeys)
		for range 2 {
			if got > 12 {
				got = min(got, dialsOfSlowRedis(t, obeys))
			}
		}
		if got > 12 {
			t.Errorf("dialled %d times, want at most 12: for what was under way until the circuit opened, and a few attempts to close it", got)
		}
	})
}

func dialsOfSlowRedis(t *testing.T, obeys bool) int64 {
	t.Helper()
	p := newTarget(t, byProxy("slow", redistest.Delay(200*time.Millisecond)), func(o *redis.Options) {
		o.ContextTimeoutEnabled, o.PoolSize = obeys, 20
	})
	c := startCallers(t, must(t, p.client, nil), 50, unhurried(5*time.Millisecond), nil)
	c.awaitShared()
	p.proxy.Set(redistest.Delay(200 * time.Millisecond))
	c.awaitOpen()
	time.Sleep(2 * time.Second)
	c.dismiss()
	return p.wire.dials.Load()
}
