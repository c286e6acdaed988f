// The Engine's limiter, which sees every check of the middlewares.

package replay

import (
	"context"
	"strings"

	"github.com/penstock-go/penstock/algorithms"
)

// A limiter counts in memory at the Engine's instants, and records every decision.
type limiter struct {
	engine  *Engine
	memory  *algorithms.Memory
	history *history
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
		e := l.engine
		e.asked = append(e.asked, asked{cost: c.Cost})
		a := &e.asked[len(e.asked)-1]
		a.policy, a.key = l.history.record(e.now, c, e.policies)
		if p := a.policy; c.Decision.Receipt.Units() > 0 && (p.ChargeIf != nil || p.Cost != nil || c.Limit.Algorithm().Concurrent()) {
			a.check, e.settles = *c, true
			a.check.Key = l.history.keys.at(a.key).text // the bytes of the other are the request's
		}
	}
	return nil
}

// isBan reports whether a keyspace beside a policy's counts bans.
func isBan(policy string) bool {
	_, beside, _ := strings.Cut(policy, "~")
	return beside != "" && beside != "candidate"
}
