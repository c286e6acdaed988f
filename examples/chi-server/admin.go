package main

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms/overrides"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// A table holds the overrides: an overrides.Memory, or an overrides.Redis for
// all instances.
type table interface {
	ratelimit.Overrides
	Set(ctx context.Context, policy, key string, o overrides.Override) error
}

const overrideTimeout = 3 * time.Second

// override sets what the flag says of API keys.
func (l *limits) override(ctx context.Context, c config, t table) error {
	ctx, cancel := context.WithTimeout(ctx, overrideTimeout)
	defer cancel()
	for _, o := range c.overrides {
		key, err := l.apiKey.Of(&http.Request{Header: http.Header{"X-Api-Key": {o.apiKey}}})
		if err != nil {
			return err
		}
		if err := t.Set(ctx, chargesMerchant, key, overrides.Override{Limit: o.limit}); err != nil {
			return err
		}
	}
	return nil
}

// admin is the operators' console, for those who know the token.
func (l *limits) admin(token string) (http.Handler, error) {
	console, err := ratelimit.NewConsole(l.all...).Handler(func(r *http.Request) (string, error) {
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare([]byte(given), []byte(token)) == 0 {
			return "", errors.New("not the token of -admin-token")
		}
		return "operator", nil
	})
	if err != nil {
		return nil, err
	}
	return l.console.Handler(http.StripPrefix("/admin", console)), nil
}
