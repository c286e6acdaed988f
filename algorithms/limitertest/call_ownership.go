// Callers own their checks again as soon as Allow returns, also if their context ended before the answer. The race
// detector finds most violations; counts of wrong keys reveal the others.

package limitertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/penstock-go/penstock/algorithms"
)

func runOwnership(t *testing.T, s Subject) {
	for _, a := range every() {
		t.Run(a.name(), func(t *testing.T) {
			t.Parallel()
			const rule = "a caller may reuse its checks and the bytes of its keys when Allow returns, answered or not"
			s.crowd(t, rule).reuse(a.of(9_000, 365*24*time.Hour))
		})
	}
}

const (
	poisonKey    = "poison" // as long as every key of the test
	poisonPolicy = "poison-poli"
)

// A scribbler asks again and again with the same slice and the same bytes.
type scribbler struct {
	*crowd
	limiter     algorithms.Limiter
	key, policy []byte
	checks      [2]algorithms.Check
}

// reuse has many callers overwrite the checks and bytes that they asked with. The overwritten checks are a valid
// call, so a limiter that still reads them charges keys of no request.
func (c *crowd) reuse(l algorithms.Limit) {
	c.claimed(c.on("", l, 1), c.on("", l, 0))
	var asked, admitted [4]atomic.Int64
	var all sync.WaitGroup
	for g := range callers {
		s := &scribbler{crowd: c, limiter: c.limiters[g%len(c.limiters)]}
		all.Go(func() {
			for i := range 8 {
				k := (g + i) % len(asked)
				asked[k].Add(1)
				if s.ask(l, k, g%2 == 0) {
					admitted[k].Add(1)
				}
			}
		})
	}
	all.Wait()
	for k := range asked {
		used := l.Burst() - c.peek(c.on(fmt.Sprintf("key-%02d", k), l, 0)).Remaining
		if used < admitted[k].Load() || used > asked[k].Load() {
			c.errorf("%v: got %d units in use, want between the %d admitted and the %d asked for",
				l, used, admitted[k].Load(), asked[k].Load())
		}
	}
	for _, key := range []string{poisonKey, "key-00", "key-03"} {
		for _, p := range []string{policy, poisonPolicy} {
			if key == poisonKey || p == poisonPolicy {
				c.full(algorithms.Check{Policy: p, Key: c.principal + "|" + key, Limit: l})
			}
		}
	}
}

// ask takes one unit of key k, perhaps gives up, and scribbles. It reports whether the call was admitted.
func (s *scribbler) ask(l algorithms.Limit, k int, giveUp bool) bool {
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	s.key = fmt.Appendf(s.key[:0], "%s|key-%02d", s.principal, k)
	s.policy = append(s.policy[:0], policy...)
	for i := range s.checks {
		s.checks[i] = algorithms.Check{
			Policy: unsafe.String(&s.policy[0], len(s.policy)),
			Key:    unsafe.String(&s.key[0], len(s.key)),
			Limit:  l,
		}
	}
	s.checks[0].Cost = 1
	if giveUp {
		time.AfterFunc(time.Duration(rand.Int64N(int64(300*µs))), cancel)
	}
	err := s.limiter.Allow(ctx, s.checks[:])
	admitted := err == nil && algorithms.Allowed(s.checks[:])
	if err != nil && !giveUp {
		s.errorf("got error %v, want none", err)
	}
	copy(s.key[len(s.principal)+1:], poisonKey)
	copy(s.policy, poisonPolicy)
	for i := range s.checks {
		s.checks[i].Op, s.checks[i].Cost = algorithms.Force, 1<<20
	}
	return admitted
}
