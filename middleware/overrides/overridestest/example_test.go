package overridestest_test

import (
	"testing"

	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides/overridestest"
)

// A test of a table of a service's own, whose rows are Place and Override.
func ExampleRun() {
	_ = func(t *testing.T) { // e.g. TestOverrides
		overridestest.Run(t, func(tb testing.TB, all map[overridestest.Place]ratelimit.Override) ratelimit.Overrides {
			return rows(all)
		})
	}
	// Output:
}
