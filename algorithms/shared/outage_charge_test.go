// Charges in Redis after its replies were lost.

package shared

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A request is charged once if Redis answered it, and at most once otherwise,
// however its reply is lost and however the client reacts. Neither a second
// attempt nor a hand-back charges it again.
func TestOutageChargesOnce(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	atOnce(t, sites, func(t *testing.T, start func(*testing.T) *site) {
		s := start(t)
		for _, l := range losses {
			t.Run(l.name, func(t *testing.T) { s.chargesOnce(t, l) })
		}
		t.Run("script forgotten", s.chargesOnceAndLoads)
		t.Run("caller gone before", s.chargesNothing)
	})
}

// A tenant is a Limiter with its own client and prefix. It counts its requests.
type tenant struct {
	*Limiter
	t            *testing.T
	prefix       string
	sent, shared map[string]int64 // by key
}

var tenants atomic.Int64

func (s *site) newTenant(t *testing.T, o *settings) *tenant {
	t.Helper()
	client := s.client(o)
	c := &tenant{t: t, prefix: fmt.Sprintf("tenant-%d", tenants.Add(1)), sent: make(map[string]int64), shared: make(map[string]int64)}
	t.Cleanup(func() {
		redistest.Until(t, "no batch is under way", func() bool { return c.redis.underWay() == 0 })
		_ = client.Close()
	})
	c.Limiter = must(t, client, &Options{
		Prefix:   c.prefix,
		Deadline: tenantDeadline,
	})
	return c
}

// ask lets every key take one unit, all at the same time.
func (c *tenant) ask(keys ...string) {
	errs, decisions := askAll(context.Background(), c.Limiter, ample, keys)
	for _, key := range keys {
		if errs[key] != nil || !decisions[key].Allowed {
			c.t.Errorf("%s: got %+v, %v, want it to be allowed", key, decisions[key], errs[key])
		}
		c.sent[key]++
		if decisions[key].Source == algorithms.Shared {
			c.shared[key]++
		}
	}
}

func (s *site) chargesOnce(t *testing.T, l loss) {
	var everybody []*tenant
	for _, o := range clientSettings {
		everybody = append(everybody, s.newTenant(t, o))
	}
	each := func(f func(*tenant)) {
		var wg sync.WaitGroup
		for _, c := range everybody {
			wg.Go(func() { f(c) })
		}
		wg.Wait()
	}
	together := neighbours(64)
	each(func(c *tenant) {
		for range 3 { // so that there are idle connections
			c.ask(together...)
		}
	})
	l.begin(s)
	each(func(c *tenant) {
		c.ask("usr=alone")
		for range 4 {
			c.ask(together...)
		}
	})
	l.end(s)
	each(func(c *tenant) {
		redistest.Until(t, "the circuit is closed and nothing is owed", func() bool {
			c.ask("usr=after")
			got := c.Stats().Fallback
			return got.Open == 0 && got.Owed == 0
		})
		c.ask(together...)
	})
	var shared, local int64
	for i, c := range everybody {
		used := s.used(t, c)
		for key, sent := range c.sent {
			if used[key] < c.shared[key] || used[key] > sent {
				t.Errorf("%s, %s: %d charged, want at least the %d that Redis answered, of %d requests",
					clientSettings[i].name, key, used[key], c.shared[key], sent)
			}
			shared += c.shared[key]
		}
		local += int64(c.Stats().Fallback.Local)
	}
	if shared == 0 || local == 0 {
		t.Errorf("Redis answered %d requests, and %d others were decided locally: nothing was tried", shared, local)
	}
}

// neighbours returns keys of one master of a Cluster, which share batches.
func neighbours(n int) (keys []string) {
	for i := 0; len(keys) < n; i++ {
		if key := fmt.Sprint("usr=", i); slotOf(key) < 16384/3 {
			keys = append(keys, key)
		}
	}
	return keys
}

// used returns what Redis holds against keys, once that does not change any more.
func (s *site) used(t *testing.T, c *tenant) map[string]int64 {
	t.Helper()
	look := func() map[string]int64 {
		used := make(map[string]int64)
		for _, client := range s.direct {
			r := newRedis(t, client, &Options{Prefix: c.prefix, Deadline: 10 * time.Second})
			for key := range c.sent {
				d, err := algorithms.AllowN(context.Background(), r, key, ample, 0)
				if err != nil {
					t.Fatal(err)
				}
				used[key] += ample.Burst() - d.Remaining
			}
		}
		return used
	}
	for before := look(); ; {
		time.Sleep(100 * time.Millisecond)
		after := look()
		if maps.Equal(before, after) {
			return after
		}
		before = after
	}
}

// trips counts the round trips of scripts, and holds each until the test lets it
// go.
type trips struct {
	n    atomic.Int64
	pass chan struct{}
}

func (h *trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.wait(cmd)
		return next(ctx, cmd)
	}
}

func (h *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.wait(cmds[0])
		return next(ctx, cmds)
	}
}

func (h *trips) wait(cmd redis.Cmder) {
	if strings.HasPrefix(cmd.Name(), "eval") { // and is no part of a handshake
		h.n.Add(1)
		<-h.pass
	}
}

// A script that servers have forgotten costs one more round trip, however many
// calls share it.
func (s *site) chargesOnceAndLoads(t *testing.T) {
	client := s.client(clientSettings[0])
	t.Cleanup(func() { _ = client.Close() })
	h := &trips{pass: make(chan struct{})}
	client.AddHook(h)
	c := &tenant{t: t, prefix: fmt.Sprintf("tenant-%d", tenants.Add(1)), sent: make(map[string]int64)}
	var seen Client = client
	if _, ok := client.(*redis.Client); ok { // the clients of its WithTimeout have no hooks
		seen = struct{ redis.UniversalClient }{client}
	}
	r := newRedis(t, seen, &Options{Prefix: c.prefix, Deadline: 10 * time.Second, InFlight: 1})
	keys := neighbours(16) // which fit one batch
	for _, key := range keys {
		c.sent[key]++
	}
	s.used(t, c) // all know the script
	var wg sync.WaitGroup
	for i, key := range keys { // the first is on its way, and the others gather
		wg.Go(func() {
			if d, err := algorithms.Allow(context.Background(), r, key, ample); err != nil || !d.Allowed {
				t.Errorf("%s: got %+v, %v", key, d, err)
			}
		})
		redistest.Until(t, "the call is queued", func() bool { return h.n.Load() == 1 && r.redis.queued() == i })
	}
	h.pass <- struct{}{}
	redistest.Until(t, "the second batch is on its way", func() bool { return h.n.Load() == 2 })
	s.each(forgetScripts)
	close(h.pass)
	wg.Wait()
	if got := h.n.Load(); got != 3 {
		t.Errorf("got %d round trips, want one, and two of the gathered calls", got)
	}
	for key, used := range s.used(t, c) {
		if used != 1 {
			t.Errorf("%s: %d charged, want 1", key, used)
		}
	}
}

// Nothing is sent for a caller that has hung up.
func (s *site) chargesNothing(t *testing.T) {
	c := s.newTenant(t, clientSettings[0])
	keys := neighbours(8)
	c.ask(keys...)
	for key := range c.sent {
		redistest.Until(t, "Redis answers", func() bool { c.ask(key); return c.shared[key] > 0 })
	}
	s.set(redistest.Delay(0).Containing("eval")) // which counts them
	defer s.set(redistest.Pass())
	before, sent := s.used(t, c), s.struck()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	errs, _ := askAll(ctx, c.Limiter, ample, keys)
	for key, err := range errs {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want the context's error", key, err)
		}
	}
	if after := s.used(t, c); !maps.Equal(before, after) || s.struck() != sent {
		t.Errorf("got %d requests, and charges %v, want none, and %v", s.struck()-sent, after, before)
	}
}
