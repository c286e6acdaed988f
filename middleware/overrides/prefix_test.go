package overrides_test

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// A wrapper shows the limiter below it.
type wrapper struct{ algorithms.Limiter }

func (w wrapper) Unwrap() algorithms.Limiter { return w.Limiter }

// Services whose limiters have different prefixes have overrides of their own, and instances of one service share
// theirs. A prefix of RedisOptions comes first.
func TestRedisTakesThePrefixOfTheLimiter(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client()
	open := func(service, prefix string) *overrides.Redis {
		limiter := ratelimit.Must(shared.New(rdb, &shared.Options{Prefix: service, Logger: quiet}))
		r := ratelimit.Must(overrides.NewRedis(rdb, wrapper{limiter}, &overrides.RedisOptions{Prefix: prefix, Logger: quiet}))
		t.Cleanup(func() { _, _ = r.Close(), limiter.Close() }) // never fail
		return r
	}
	shop := open("shop", "")
	set(t, shop, overrides.All, "ip=192.0.2.1", ratelimit.Override{Mode: ratelimit.ModeBanned, Until: time.Now().Add(time.Hour)})
	for name, tt := range map[string]struct {
		table *overrides.Redis
		found bool
	}{
		"another instance":                  {open("shop", ""), true},
		"another service":                   {open("mail", ""), false},
		"a service with the default prefix": {open("", ""), false},
		"a service that joins":              {open("mail", "shop"), true},
	} {
		if err := tt.table.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		if _, found := tt.table.Find("orders", "ip=192.0.2.1"); found != tt.found {
			t.Errorf("%s: got a ban %t, want %t", name, found, tt.found)
		}
	}
}

// A table that could mix the overrides of services is refused.
func TestRedisNeedsAPrefix(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client()
	for name, limiter := range map[string]algorithms.Limiter{"no limiter": nil, "a limiter in memory": algorithms.NewMemory(nil)} {
		if _, err := overrides.NewRedis(rdb, limiter, nil); err == nil || !strings.Contains(err.Error(), "set RedisOptions.Prefix") {
			t.Errorf("%s: got error %v, want the remedy", name, err)
		}
	}
}
