// Package longtest leaves tests that wait for long to make test-long.
package longtest

import (
	"os"
	"testing"
)

// Skip skips the test, except in make test-long. Call it in the first line of a test: .ci/long finds the long tests by
// that line.
func Skip(tb testing.TB) {
	tb.Helper()
	if testing.Short() || os.Getenv("PENSTOCK_LONG") == "" {
		tb.Skip("left out: make test-long runs it")
	}
}
