// What operators change of the limits: at start by -override, and over HTTP at /admin/.

package main

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
)

// A table holds the overrides: an overrides.Memory, or an overrides.Redis for all
// instances.
type table interface {
	ratelimit.Overrides
	Set(ctx context.Context, policy, key string, o ratelimit.Override) error
}

// An override is the limit of one account for charges, from the start.
type override struct {
	key   string // of the policy, e.g. usr=merchant-1
	limit algorithms.Limit
}

const overrideTimeout = 3 * time.Second

// setOverrides sets the limits of -override.
func setOverrides(ctx context.Context, all []override, t table) error {
	ctx, cancel := context.WithTimeout(ctx, overrideTimeout)
	defer cancel()
	for _, o := range all {
		if err := t.Set(ctx, "charges-merchant", o.key, ratelimit.Override{Limit: o.limit}); err != nil {
			return err
		}
	}
	return nil
}

// admin returns the operators' console. It serves requests with the token.
func admin(token string, all []*ratelimit.Middleware) (http.Handler, error) {
	handler, err := console.New(all...).Handler(func(r *http.Request) (string, error) {
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare([]byte(given), []byte(token)) == 0 {
			return "", errors.New("not the token of -admin-token")
		}
		return "operator", nil
	})
	if err != nil {
		return nil, err
	}
	return http.StripPrefix("/admin", handler), nil
}
