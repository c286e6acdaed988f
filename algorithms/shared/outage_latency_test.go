// The time that an outage costs a caller.

package shared

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/penstock-go/penstock/internal/longtest"
)

// attempts is how often a measurement may be made.
const attempts = 5

// outageBounds are what an outage may cost a caller of a Limiter and a client with
// their default options. The race detector slows everything down, and other
// processes sometimes do. So one measurement in attempts has to keep the bounds.
func outageBounds() (slowest, p99 time.Duration) {
	if raceEnabled {
		return 3 * time.Second, 200 * time.Millisecond
	}
	return defaultDeadline + 100*time.Millisecond, time.Millisecond
}

// An outage is what callers saw of one.
type outage struct {
	slowest    time.Duration // of all calls that began before the circuit opened
	calls      int64         // from the beginning until the circuit opened
	opened     time.Duration // after the beginning
	p99        time.Duration // of calls that began while it was open
	dials      int64         // while it was open
	unfinished int64         // dials that go-redis was at when it opened, and went on with
	once       bool          // it opened once, and stayed open
}

func (o outage) acceptable() bool {
	slowest, p99 := outageBounds()
	return o.slowest <= slowest && o.p99 <= p99 && o.dials == 0 && o.once
}

// No other test runs while this one does.
func TestOutageLatency(t *testing.T) {
	longtest.Skip(t)
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "fault\tslowest before open\tcalls until open\topen after\tp99 once open\tdials once open\tdials it had begun")
	for _, cause := range outageCauses {
		t.Run(cause.name, func(t *testing.T) {
			var o outage
			for range attempts {
				if o = measureOutage(t, cause); o.acceptable() {
					break
				}
			}
			if slowest, p99 := outageBounds(); !o.acceptable() {
				t.Errorf("got %+v, want at most %v, p99 %v, no dials, and the circuit open once", o, slowest, p99)
			}
			fmt.Fprintf(w, "%s\t%v\t%d\t%v\t%v\t%d\t%d\n", cause.name, o.slowest.Round(10*time.Microsecond), o.calls,
				o.opened.Round(time.Millisecond), o.p99.Round(100*time.Nanosecond), o.dials, o.unfinished)
		})
	}
	_ = w.Flush()
	t.Logf("what an outage costs:\n%s", &table)
}

func measureOutage(t *testing.T, cause outageCause) (o outage) {
	t.Helper()
	p := newTarget(t, cause, nil)
	limiter := must(t, p.client, nil)
	var mu sync.Mutex
	var open []time.Duration
	c := startCallers(t, limiter, 20, 2*time.Millisecond, func(s sample) {
		mu.Lock()
		defer mu.Unlock()
		if s.open {
			open = append(open, s.took)
		} else {
			o.slowest = max(o.slowest, s.took)
		}
	})
	c.awaitShared()
	trips := limiter.Stats().Fallback.Trips // of a machine that was too busy, before

	began, before := time.Now(), c.began.Load()
	cause.begin(p)
	c.awaitOpen()
	o.opened, o.calls = time.Since(began), c.began.Load()-before
	// In the background go-redis repeats a failed dial four times, every 100 ms,
	// even if its caller has given up. A beat that was under way goes on for a
	// second. Then there are no more dials.
	before = p.wire.dials.Load()
	for range 8 {
		o.unfinished = p.wire.dials.Load() - before
		time.Sleep(300 * time.Millisecond)
		if o.dials = p.wire.dials.Load() - before - o.unfinished; o.dials == 0 {
			break
		}
	}

	c.dismiss()
	slices.Sort(open)
	o.p99 = open[len(open)*99/100]
	got := limiter.Stats().Fallback
	o.once = got.Open > 0 && got.Trips == trips+1
	cause.end(p)
	return o
}
