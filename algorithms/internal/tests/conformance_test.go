// The rules of limiters, kept by Memory.

package tests

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/limitertest"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
)

func TestMemoryConforms(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	s := limitertest.Memory()
	s.Foreign = func(tb testing.TB, now func() time.Time) algorithms.Limiter {
		tb.Helper()
		return newShared(tb, client, now)
	}
	limitertest.Run(t, s)
}

// newShared returns a shared limiter that ends with the test.
func newShared(tb testing.TB, client shared.Client, now func() time.Time) *shared.Limiter {
	tb.Helper()
	l, err := shared.New(client, &shared.Options{Now: now, Deadline: time.Minute})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close() })
	return l
}
