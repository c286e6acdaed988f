// Tests that strings of foreign code do not change.

package tests

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// A perKey is a limiter that counts each key, as anyone would write it.
type perKey struct {
	*algorithms.Memory
	mu     sync.Mutex
	counts map[string]int
}

func (c *perKey) Allow(ctx context.Context, checks []algorithms.Check) error {
	c.mu.Lock()
	for i := range checks {
		c.counts[checks[i].Policy+" "+checks[i].Key]++
		c.counts[checks[i].Key]++
	}
	c.mu.Unlock()
	return c.Memory.Allow(ctx, checks)
}

func (c *perKey) check(t *testing.T, keys, each int) {
	t.Helper()
	if len(c.counts) != 2*keys {
		t.Errorf("got %d entries, want %d", len(c.counts), 2*keys)
	}
	for key, n := range c.counts {
		if n != each {
			t.Errorf("got %d of %q, want %d", n, key, each)
		}
	}
}

// TestForeignLimitersMayKeepKeys: also if they embed a limiter of this module.
func TestForeignLimitersMayKeepKeys(t *testing.T) {
	counts := &perKey{Memory: newMemory(t), counts: make(map[string]int)}
	h := newMiddleware(t, counts, nil, byIP("p", hourly)).Handler(ok)
	for i := range 100 {
		record(h, from(fmt.Sprintf("192.0.2.%d", 10+i%10)))
	}
	counts.check(t, 10, 10)
}

// remembering are overrides that remember what their database said, as anyone would write them.
type remembering struct {
	*overrides.Memory
	mu     sync.Mutex
	banned map[string]bool
}

func (c *remembering) Find(_, key string) (ratelimit.Override, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	banned, known := c.banned[key]
	if !known {
		banned = key == "ip=192.0.2.17"
		c.banned[key] = banned
	}
	return ratelimit.Override{Mode: ratelimit.ModeBanned}, banned
}

// TestForeignOverridesMayKeepKeys: no ban of another client.
func TestForeignOverridesMayKeepKeys(t *testing.T) {
	table := &remembering{Memory: overrides.NewMemory(), banned: make(map[string]bool)}
	h := newMiddleware(t, newMemory(t), &ratelimit.Options{Overrides: table}, byIP("p", plenty)).Handler(ok)
	for i := range 1000 {
		ip := fmt.Sprintf("192.0.2.%d", 10+i%10)
		if w := record(h, from(ip)); (w.Code == 403) != (ip == "192.0.2.17") {
			t.Errorf("request %d of %s: got %d", i, ip, w.Code)
		}
	}
	if len(table.banned) != 10 {
		t.Errorf("got %d keys, want 10", len(table.banned))
	}
}

// TestEventsMayBeKept: the key of a divergence does not change, hashed or plain.
func TestEventsMayBeKept(t *testing.T) {
	nobody := algorithms.Nobody()
	for _, plain := range []bool{false, true} {
		seen := new(eventLog)
		each, all := byIP("each", hourly), forAll("all", plenty)
		each.Candidate, all.Candidate = &nobody, &nobody
		h := newMiddleware(t, newMemory(t), &ratelimit.Options{Observers: []ratelimit.Observer{seen}, PlainKeys: plain}, each, all).Handler(ok)
		for i := range 10 {
			record(h, from(fmt.Sprintf("192.0.2.%d", 10+i)))
		}
		for i, e := range seen.of(ratelimit.Diverged) {
			key := fmt.Sprintf("ip=192.0.2.%d", 10+i/2)
			switch {
			case e.Policy == "all":
				key = "const=all"
			case !plain:
				key = "ip=#" + shaOf(key)
			}
			if e.Key != key {
				t.Errorf("PlainKeys %t, event %d of %s: got %q, want %q", plain, i, e.Policy, e.Key, key)
			}
		}
	}
}
