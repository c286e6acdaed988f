// The server: one handler per instance. The instances count together.

package main

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// A kind is a kind of Retry-After, and the clients that read it.
type kind struct {
	name      string
	policy    ratelimit.Policy
	instances int
	program   program
}

// crowded spreads all clients of a limit.
func crowded(l algorithms.Limit) ratelimit.Policy {
	return ratelimit.Policy{Name: "all", Key: keyfunc.Const("all"), Limit: l}
}

// oneAccount counts all clients as one: they are the workers of one account, who stand in a line.
func oneAccount(l algorithms.Limit) ratelimit.Policy {
	key := keyfunc.Custom("client", func(*http.Request) (string, error) { return "all", nil })
	return ratelimit.Policy{Name: "account", Key: key, Limit: l}
}

// honest tells all clients the true wait: those of a hidden policy hear no slot.
func honest(l algorithms.Limit) ratelimit.Policy {
	p := oneAccount(l)
	p.Hidden = true
	return p
}

// server returns the handlers of the instances. The limit is advertised, because clients that pace themselves must see it.
func (k kind) server() (all []http.Handler) {
	limiter := counted{algorithms.NewMemory(nil), k.instances}
	o := &ratelimit.Options{Headers: headers.Draft, Logger: slog.New(slog.DiscardHandler)}
	for range k.instances {
		m := ratelimit.Must(ratelimit.New(limiter, o, k.policy))
		all = append(all, m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	}
	return all
}

// counted makes a Memory the limiter of several instances.
type counted struct {
	*algorithms.Memory
	instances int
}

func (c counted) Stats() algorithms.Stats {
	s := c.Memory.Stats()
	s.Fallback.Instances = c.instances
	return s
}

// Allow decides as Redis would.
func (c counted) Allow(ctx context.Context, checks []algorithms.Check) error {
	err := c.Memory.Allow(ctx, checks)
	for i := range checks {
		checks[i].Decision.Source = algorithms.Shared
	}
	return err
}
