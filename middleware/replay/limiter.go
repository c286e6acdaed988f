// The engine's limiter, which sees every check of the middlewares.

package replay

import (
	"context"
	"net/http"
	"strings"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/lent"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// A limiter counts in memory at the engine's instants, and records every decision.
type limiter struct {
	engine  *engine
	memory  *algorithms.Memory
	history *history
}

// Handler returns what a Middleware with this limiter wraps around next.
func (l *limiter) Handler(m *ratelimit.Middleware, next http.Handler) http.Handler {
	for _, p := range m.Policies() {
		l.engine.policies[p.Name] = &p
	}
	return &handler{l.engine, m, next}
}

// User returns the user of the log line.
func (l *limiter) User() (id, tier string) { return l.engine.identity.ID, l.engine.identity.Tier }

// Unwrap tells the middlewares that no other instance shares the limiter.
func (l *limiter) Unwrap() algorithms.Limiter { return l.memory }

func init() { lent.To[*limiter]() }

// Allow implements algorithms.Limiter.
func (l *limiter) Allow(ctx context.Context, checks []algorithms.Check) error {
	if err := l.memory.Allow(ctx, checks); err != nil {
		return err
	}
	for i := range checks {
		c := &checks[i]
		if c.Op >= algorithms.Return || isBan(c.Policy) {
			continue
		}
		e := l.engine
		e.asked = append(e.asked, asked{cost: c.Cost})
		a := &e.asked[len(e.asked)-1]
		d, pair := verdict(checks, i)
		a.policy, a.key = l.history.record(e.now, c, d, e.policies)
		if pair != "" {
			l.history.series[l.history.keys[a.key].series].pair = pair
		}
		if p := a.policy; c.Decision.Receipt.Units() > 0 && (p.ChargeIf != nil || p.Cost != nil || c.Limit.Algorithm().Concurrent()) {
			a.check, e.settles = *c, true
			a.check.Key = l.history.keys[a.key].text // the bytes of the other are the request's
		}
	}
	return nil
}

// verdict returns the decision of a check, and what pairs it with another: "ShareBy", "After" or "".
// One decision speaks for the pair.
func verdict(checks []algorithms.Check, i int) (d *algorithms.Decision, pair string) {
	c := &checks[i]
	switch {
	case i+1 < len(checks) && checks[i+1].Op == algorithms.TakeElse:
		return &checks[i+1].Decision, "After"
	case c.Op == algorithms.TakeElse:
		return &c.Decision, "After"
	case i > 0 && checks[i-1].Policy == c.Policy+"~share":
		if share := &checks[i-1]; c.Op == algorithms.Trial && share.Decision.Allowed { // a shadow's trials know nothing of each other
			return &share.Decision, "ShareBy"
		}
		return &c.Decision, "ShareBy"
	}
	return &c.Decision, ""
}

// isBan reports whether a keyspace beside a policy's counts bans.
func isBan(policy string) bool {
	_, beside, _ := strings.Cut(policy, "~")
	return beside != "" && beside != "candidate"
}
