// Helpers of the tests: stores, edits, and waits for other instances.

package overrides_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// If its server was gone, a closed client of go-redis leaves a goroutine behind for up to a second.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

var (
	ctx    = context.Background()
	hourly = algorithms.TokenBucket(10, time.Hour)
	quiet  = slog.New(slog.DiscardHandler)
)

// A store is a Memory or a Redis.
type store interface {
	Find(policy, key string) (ratelimit.Override, bool)
	Set(ctx context.Context, policy, key string, o ratelimit.Override) error
	Clear(ctx context.Context, policy, key string) error
	List(ctx context.Context, policy string) (map[string]ratelimit.Override, error)
}

var _, _ store = (*overrides.Memory)(nil), (*overrides.Redis)(nil)

func set(t *testing.T, s store, policy, key string, o ratelimit.Override) {
	t.Helper()
	if err := s.Set(ctx, policy, key, o); err != nil {
		t.Fatal(err)
	}
}

func wantFound(t *testing.T, s store, policy, key string, want ratelimit.Override) {
	t.Helper()
	if got, ok := s.Find(policy, key); !ok || !same(got, want) {
		t.Errorf("%s %s: got %+v, %t, want %+v", policy, key, got, ok, want)
	}
}

func wantNone(t *testing.T, s store, policy, key string) {
	t.Helper()
	if got, ok := s.Find(policy, key); ok {
		t.Errorf("%s %s: got %+v, want none", policy, key, got)
	}
}

// same compares overrides. Equal instants may differ in their clocks.
func same(a, b ratelimit.Override) bool {
	return a.Limit == b.Limit && a.Mode == b.Mode && a.Until.Equal(b.Until)
}

// eventually waits until a condition holds.
func eventually(t *testing.T, condition string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if happened() {
			return
		}
	}
	t.Fatalf("after 10s: not %s", condition)
}

// newRedis returns an instance that the end of the test closes.
func newRedis(t *testing.T, client overrides.Client, o *overrides.RedisOptions) *overrides.Redis {
	t.Helper()
	if o == nil {
		o = &overrides.RedisOptions{Logger: quiet}
	}
	if o.Prefix == "" {
		o.Prefix = "penstock"
	}
	r, err := overrides.NewRedis(client, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() }) // never fails
	return r
}

// A log keeps all lines.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) count(words string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), words)
}
