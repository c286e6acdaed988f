package overridestest_test

import (
	"strings"
	"testing"
	"time"

	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
	"github.com/penstock-go/penstock/middleware/overrides/overridestest"
)

// fill sets overrides in a table of this module, which refuses one that has ended.
func fill(tb testing.TB, m *overrides.Memory, all map[overridestest.Place]ratelimit.Override) {
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
