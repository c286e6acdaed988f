package middleware_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// A keeper is a handler that writes what it was told later, as those that write in the background do.
type keeper struct{ kept *[]slog.Record }

func (keeper) Enabled(context.Context, slog.Level) bool { return true }
func (k keeper) WithAttrs([]slog.Attr) slog.Handler     { return k }
func (k keeper) WithGroup(string) slog.Handler          { return k }

func (k keeper) Handle(_ context.Context, r slog.Record) error {
	*k.kept = append(*k.kept, r)
	return nil
}

// TestLoggedKeysStay: a logger may keep what it was given, though the key's bytes are used again.
func TestLoggedKeysStay(t *testing.T) {
	for _, show := range []ratelimit.KeyDisplay{ratelimit.ShowHashed, ratelimit.ShowPlain} {
		var kept []slog.Record
		p := ratelimit.Policy{Name: "p", Key: keyfunc.Route(), Limit: algorithms.Nobody(), ShowKeys: show}
		m := newMiddleware(t, newStill(t), &ratelimit.Options{Logger: slog.New(keeper{&kept})}, p)
		for i := range 9 {
			r := from("192.0.2.1")
			r.Pattern = fmt.Sprint("/", i)
			check(t, m, r)
		}
		for i, r := range kept {
			r.Attrs(func(a slog.Attr) bool {
				if want := fmt.Sprint("rt=/", i); a.Key == "key" && a.Value.String() != want {
					t.Errorf("line %d: got key %s, want %s", i, a.Value, want)
				}
				return true
			})
		}
		if len(kept) != 9 {
			t.Errorf("got %d lines, want 9", len(kept))
		}
	}
}
