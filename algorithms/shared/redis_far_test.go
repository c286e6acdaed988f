// A Redis whose round trip is longer than the deadline.

package shared

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/redistest"
)

// saysHowFar reports whether a text names a round trip of at least 80 ms and the remedy.
func saysHowFar(text string) bool {
	var after string
	_, rest, _ := strings.Cut(text, "Redis answered after ")
	_, _ = fmt.Sscan(rest, &after)
	d, _ := time.ParseDuration(strings.TrimSuffix(after, ","))
	return d >= 80*time.Millisecond && strings.Contains(rest, "Options.Deadline is 50ms")
}

// Ready measures the round trip to a Redis that is too far away.
func TestReadySaysThatRedisIsTooFarAway(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, redistest.Start(t).Addr())
	proxy.Set(redistest.Delay(80 * time.Millisecond))
	l := must(t, clientOf(t, proxy.Addr(), nil), nil)
	redistest.UntilEmpty(t, "Ready says how far Redis is away", func() string {
		err := l.Ready(t.Context())
		if Reason(err) != trouble.Timeout {
			t.Errorf("got %v, want a timeout", err)
		}
		if text := fmt.Sprint(err); !saysHowFar(text) { // a busy machine may be slower than a command's deadline
			return text
		}
		return ""
	})
}

// Once late replies have come, the log says how late, and so does Ready while the
// circuit is open.
func TestOutageOfAFarRedisSaysSo(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	redistest.UntilEmpty(t, "the outage of a far Redis says so", func() string {
		log, proxy := &logRecords{}, redistest.StartProxy(t, server.Addr())
		l := must(t, clientOf(t, proxy.Addr(), nil), &Options{Logger: log.logger()})
		redistest.Until(t, "Redis decides", func() bool { return take(t, l, "usr=1", ample, 1).Source == algorithms.Shared })
		proxy.Set(redistest.Delay(80 * time.Millisecond))
		redistest.Until(t, "the circuit opens", func() bool {
			take(t, l, "usr=1", ample, 1)
			time.Sleep(time.Millisecond)
			return l.Stats().Fallback.Open > 0 && log.attr(logUnavailable, "error") != nil
		})
		if text := fmt.Sprint(log.attr(logUnavailable, "error")); !saysHowFar(text) { // a busy machine may read no reply before the circuit opens
			return text
		}
		if err := l.Ready(t.Context()); err == nil || !saysHowFar(err.Error()) {
			t.Errorf("got %v from Ready, want that Redis is too far away", err)
		}
		return ""
	})
}
