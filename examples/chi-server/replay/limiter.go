// The Engine's limiter, which sees every check of the middlewares.

package replay

import (
	"context"
	"strings"

	"github.com/penstock-go/penstock/algorithms"
)

// A limiter counts in memory at the Engine's instants, and books every decision.
type limiter struct {
	engine *Engine
	memory *algorithms.Memory
	book   *book // nil: decisions are not booked
}

// Unwrap tells the middlewares that no other instance shares the limiter.
func (l *limiter) Unwrap() algorithms.Limiter { return l.memory }

// Allow implements algorithms.Limiter.
func (l *limiter) Allow(ctx context.Context, checks []algorithms.Check) error {
	if err := l.memory.Allow(ctx, checks); err != nil {
		return err
	}
	for i := range checks {
		c := &checks[i]
		if c.Op != algorithms.Take && c.Op != algorithms.Trial && c.Op != algorithms.TrialInstead || isBan(c.Policy) {
			continue
		}
		a := asked{check: *c}
		if l.book == nil {
			a.check.Key = strings.Clone(c.Key) // its bytes are the request's
		} else {
			a.key, a.check.Key = l.book.enter(l.engine.now, c)
		}
		l.engine.asked = append(l.engine.asked, a)
	}
	return nil
}

// isBan reports whether a keyspace beside a policy's counts bans.
func isBan(policy string) bool {
	_, beside, _ := strings.Cut(policy, "~")
	return beside != "" && beside != "candidate"
}
