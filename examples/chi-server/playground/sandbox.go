// One visitor's limit and its middleware.

package playground

import (
	"context"
	"net/http"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/examples/chi-server/playground/instruments"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

const policy = "sandbox"

// A sandbox is a limit that one visitor may change, and a middleware that
// enforces it.
type sandbox struct {
	id      string
	visitor string // the key of its maker
	limiter algorithms.Limiter
	m       *ratelimit.Middleware
	http.Handler

	users int       // requests and streams; guarded by Page.mu
	used  time.Time // end of the last one; guarded by Page.mu
}

func (s *sandbox) policy(limit algorithms.Limit) ratelimit.Policy {
	key := keyfunc.Custom(policy, func(*http.Request) (string, error) { return s.id, nil })
	return ratelimit.Policy{Name: policy, Key: key, Limit: limit, Cost: cost}
}

// cost is the cost that the page asks for: ?cost=3.
func cost(r *http.Request) int64 { return instruments.Cost(r.URL.Query()) }

// serve answers the requests that the sandbox's limit admits.
func serve(w http.ResponseWriter, r *http.Request) {
	v, _ := ratelimit.FromContext(r.Context())
	writeJSON(w, http.StatusOK, map[string]any{"served": true, "held_ms": v.Delay.Milliseconds()})
}

// setLimit replaces the limit. The units in use stay in use, unless the algorithm
// changes.
func (s *sandbox) setLimit(w http.ResponseWriter, limit algorithms.Limit) {
	if err := s.m.Update(s.policy(limit)); err != nil {
		refuse(w, http.StatusInternalServerError, "the limit could not be changed")
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"limit": limit.String()})
}

type level struct {
	Remaining int64  `json:"remaining"`
	Burst     int64  `json:"burst"`
	Limit     string `json:"limit"`
	Source    string `json:"source"`       // shared or local
	Open      bool   `json:"circuit_open"` // Redis is bypassed
	Gone      bool   `json:"redis_gone"`   // the outage lasts
}

// level asks the limiter, and takes nothing.
func (s *sandbox) level(ctx context.Context, g *gate) (level, error) {
	limit := s.m.Policies()[0].Limit
	checks := []algorithms.Check{{Policy: policy, Key: policy + "=" + s.id, Limit: limit}}
	if err := s.limiter.Allow(ctx, checks); err != nil {
		return level{}, err
	}
	d := checks[0].Decision
	l := level{Remaining: d.Remaining, Burst: limit.Burst(), Limit: limit.String(), Source: d.Source.String()}
	if g != nil {
		l.Open, l.Gone = g.shared.Stats().Fallback.Open > 0, g.left() > 0
	}
	return l, nil
}
