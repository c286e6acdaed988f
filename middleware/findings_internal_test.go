package ratelimit

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A lineCounter is a log that counts its lines.
type lineCounter struct {
	slog.Handler
	n atomic.Int64
}

func (c *lineCounter) Enabled(context.Context, slog.Level) bool  { return true }
func (c *lineCounter) Handle(context.Context, slog.Record) error { c.n.Add(1); return nil }
func (c *lineCounter) WithAttrs([]slog.Attr) slog.Handler        { return c }

// TestFindingsAreLoggedOnce, however many requests show the cause at once.
func TestFindingsAreLoggedOnce(t *testing.T) {
	const findings = 20_000
	lines := new(lineCounter)
	m := Must(New(algorithms.NewMemory(nil), &Options{Logger: slog.New(lines)}, Policy{Name: "p", Limit: algorithms.TokenBucket(1, time.Hour)}))
	policies := make([]policy, findings)
	for i := range policies {
		policies[i].symptoms = new(symptoms)
	}
	var wg sync.WaitGroup
	var arrived atomic.Int64
	for range 2 {
		wg.Go(func() {
			for i := range policies {
				for arrived.Add(1); arrived.Load() < int64(2*(i+1)); { // both begin at once
					runtime.Gosched()
				}
				m.find(unknownTier, &policies[i])
			}
		})
	}
	wg.Wait()
	if got := lines.n.Load(); got != findings {
		t.Errorf("got %d lines, want %d", got, findings)
	}
}
