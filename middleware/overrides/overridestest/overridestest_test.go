package overridestest_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/redistest"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
	"github.com/penstock-go/penstock/middleware/overrides/overridestest"
)

// A table is one of this module.
type table interface {
	Set(ctx context.Context, policy, key string, o ratelimit.Override) error
}

// fill sets overrides in a table of this module, which refuses one that has ended.
func fill(tb testing.TB, m table, all map[overridestest.Place]ratelimit.Override) {
	tb.Helper()
	for place, o := range all {
		if !o.Until.IsZero() && o.Until.Before(time.Now()) {
			tb.Skip("the table refuses an override that has ended")
		}
		if err := m.Set(tb.Context(), place.Policy, place.Key, o); err != nil {
			tb.Fatal(err)
		}
	}
}

func TestMemory(t *testing.T) {
	overridestest.Run(t, func(tb testing.TB, all map[overridestest.Place]ratelimit.Override) ratelimit.Overrides {
		m := overrides.NewMemory()
		fill(tb, m, all)
		return m
	})
}

// TestRedis: each rule holds on a server, for the instance that made the edits and for one that reads them.
func TestRedis(t *testing.T) {
	for _, reads := range []bool{false, true} {
		t.Run(fmt.Sprintf("another instance reads %t", reads), func(t *testing.T) {
			server, tables := redistest.Start(t), 0
			overridestest.Run(t, func(tb testing.TB, all map[overridestest.Place]ratelimit.Override) ratelimit.Overrides {
				tables++ // each rule has a table of its own
				o := &overrides.RedisOptions{Prefix: fmt.Sprint("rule", tables), Logger: slog.New(slog.DiscardHandler)}
				r := open(tb, server, o)
				fill(tb, r, all)
				if reads {
					r = open(tb, server, o)
					if err := r.Refresh(tb.Context()); err != nil {
						tb.Fatal(err)
					}
				}
				return r
			})
		})
	}
}

func open(tb testing.TB, server *redistest.Server, o *overrides.RedisOptions) *overrides.Redis {
	tb.Helper()
	r, err := overrides.NewRedis(server.Client(), nil, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = r.Close() }) // never fails
	return r
}

// rows is a table as a service might write it, over the rows of a database.
type rows map[overridestest.Place]ratelimit.Override

func (r rows) Find(policy, key string) (ratelimit.Override, bool) {
	first, _, _ := strings.Cut(key, "|")
	for _, key := range []string{key, first, ratelimit.Everyone} {
		o, found := r[overridestest.Place{Policy: policy, Key: key}]
		if found && (o.Until.IsZero() || time.Now().Before(o.Until)) {
			return o, true
		}
	}
	return ratelimit.Override{}, false
}

func TestRows(t *testing.T) {
	overridestest.Run(t, func(_ testing.TB, all map[overridestest.Place]ratelimit.Override) ratelimit.Overrides {
		return rows(all)
	})
}
