// What the tests of this package share: limiters made of some of the layers, and
// a layer made of any limiter.

package shared

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/circuit"
)

// newRedis returns a limiter that is the Redis layer alone, without a circuit
// that ever opens. Unless o says otherwise, its deadline is a minute: a slow
// machine is no outage.
func newRedis(tb testing.TB, client Client, o *Options) *Limiter {
	tb.Helper()
	var options Options
	if o != nil {
		options = *o
	}
	if options.Deadline == 0 {
		options.Deadline = time.Minute
	}
	options = options.withDefaults()
	r := newReport(options.Logger, false)
	l := &Limiter{report: r, redis: newRedisLayer(client, &options, circuit.New(24*time.Hour), newLedger(r), r)}
	l.top = l.redis
	return l
}

// redisLayerOf returns a Redis layer with circuits of the deadline.
func redisLayerOf(client Client, o *Options, r *report) *redisLayer {
	return newRedisLayer(client, o, circuit.New(o.Deadline), newLedger(r), r)
}

// over returns a limiter whose only layer is top.
func over(top layer) *Limiter { return &Limiter{top: top} }

// atOnce runs subtests that mostly wait at the same time. Parallel subtests would wait for places that other tests need.
func atOnce[V any](t *testing.T, cases map[string]V, run func(*testing.T, V)) {
	var running sync.WaitGroup
	for name, v := range cases {
		running.Go(func() { t.Run(name, func(t *testing.T) { run(t, v) }) })
	}
	running.Wait()
}

// must returns a limiter, which ends with the test.
func must(tb testing.TB, client Client, o *Options) *Limiter {
	tb.Helper()
	l, err := New(client, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			tb.Error(err)
		}
	})
	return l
}

// take takes units from key under the policy "default".
func take(tb testing.TB, l algorithms.Limiter, key string, limit algorithms.Limit, units int64) algorithms.Decision {
	tb.Helper()
	d, err := algorithms.AllowN(tb.Context(), l, key, limit, units)
	if err != nil {
		tb.Fatalf("%s: %v", key, err)
	}
	return d
}

const (
	logPrefix = "ratelimit: "   // of every line
	closesFor = 2 * time.Second // a logwriter.Writer waits for a handler
	maxLines  = 1_000           // that a logwriter.Writer holds
)

// logRecords keep what was logged.
type logRecords struct {
	mu      sync.Mutex
	records []slog.Record
	seen    int // by wantLines
}

func (l *logRecords) logger() *slog.Logger { return slog.New(logHandler{l}) }

// messages returns the messages in order.
func (l *logRecords) messages() (messages []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.records {
		messages = append(messages, r.Message)
	}
	return messages
}

// count returns how many messages are equal to one.
func (l *logRecords) count(message string) (n int) {
	for _, m := range l.messages() {
		if m == message {
			n++
		}
	}
	return n
}

// attr returns an attribute of the last record with a message; nil if there is
// none.
func (l *logRecords) attr(message, key string) any {
	for i, m := range slices.Backward(l.messages()) {
		if m == message {
			return l.attrOf(i, key)
		}
	}
	return nil
}

// attrOf returns an attribute of a record; nil if there is none.
func (l *logRecords) attrOf(i int, key string) (value any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records[i].Attrs(func(a slog.Attr) bool {
		if a.Key == key {
			value = a.Value.Any()
		}
		return true
	})
	return value
}

type logHandler struct{ *logRecords }

func (h logHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h logHandler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h logHandler) WithGroup(string) slog.Handler            { return h }

func (h logHandler) Handle(_ context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.records = append(h.records, r.Clone())
	return nil
}

// callOf returns a call of n zero items. Each must be filled in and added.
func callOf(n int) *call {
	c := getCall(n)
	clear(c.items)
	return c
}
