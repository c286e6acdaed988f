// Outages, seen by clients that keep to their limit, and by clients that take all they can.

package shared

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/algorithms/shared/internal/circuit"
)

// outage makes the primary refuse all calls for some time.
func (w *world) outage(from, length time.Duration) {
	time.AfterFunc(from, func() { w.shared.fails(errRefused) })
	time.AfterFunc(from+length, func() { w.shared.fails(nil) })
}

// A client that keeps to its limit does not notice an outage. After it, the units of the outage count from the
// hand-back, so the client may be denied once for each unit that they need to come back.
func TestFallbackSparesCompliantClients(t *testing.T) {
	t.Parallel()
	// Windows are odd, so that no take falls on the instant of a probe.
	const second, outage = 1_003 * time.Millisecond, 50 * time.Second
	limits := []algorithms.Limit{algorithms.TokenBucket(10, second).WithBurst(1), algorithms.LeakyBucket(10, second).WithBurst(1), algorithms.TokenBucket(7, second).WithBurst(2)}
	for _, window := range []time.Duration{second, 20_030 * time.Millisecond, 70_070 * time.Millisecond} {
		limits = append(limits, everyAlgorithm(10, window)...)
	}
	limits = append(limits, everyAlgorithm(100, 50_070*time.Millisecond)...)
	for _, l := range limits {
		for i, from := range []time.Duration{1_234 * time.Millisecond, 25_678 * time.Millisecond, 71_234 * time.Millisecond, 25_678 * time.Millisecond} {
			ahead := 20 * (i / 3) // then shares begin with what the views say
			t.Run(fmt.Sprintf("%v/%v/%d", l, from, ahead), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, ideal := remembering(t, Options{Ahead: ahead}), newMemory() // what the primary would hold without an outage
					w.outage(from, outage)
					every := (l.Window() + time.Duration(l.Requests()) - 1) / time.Duration(l.Requests())
					every = (every + time.Microsecond - 1).Truncate(time.Microsecond)
					if l.Step().Row == step.SlidingWindowCounter {
						every = every * 5 / 4 // its estimate is rounded up, by up to one of these ten
					}
					late := every // a bucket brings a unit back by then, a window all its units after two windows
					if l.Step().Row.Refill != step.Continuously {
						late = 2 * l.Window()
					}
					local := 0
					for start := time.Now(); time.Since(start) < 3*time.Minute+2*l.Window(); time.Sleep(every) {
						if d := take(t, ideal, "usr=1", l, 1); !d.Allowed {
							t.Fatalf("after %v: %+v without any outage: the client is not compliant", time.Since(start), d)
						}
						d := w.take("usr=1", l, 1)
						end := from + outage + 2*circuit.SteadyPause + handBackEvery
						if at := time.Since(start); !d.Allowed && (at < from+outage || at > end+late) {
							t.Fatalf("after %v: denied (%+v), open is %v", at, d, w.stats().Open)
						}
						if d.Source == algorithms.Local {
							local++
						}
					}
					if got := w.stats(); local == 0 || got.Open > 0 || got.Owed != 0 {
						t.Errorf("got %d local decisions, %+v; want an outage that has ended", local, got)
					}
				})
			})
		}
	}
}

// A client that takes all it can get has spent its limit when an outage begins.
// It gets nothing more before a unit would come back. Then a window of the clock
// is the window that the primary would have, and no second quota. Other limits
// give one burst more: the memory does not know what the primary holds.
func TestFallbackIsNoSecondQuota(t *testing.T) {
	t.Parallel()
	for _, window := range []time.Duration{10 * time.Second, time.Minute, time.Hour} {
		for _, l := range everyAlgorithm(20, window) {
			t.Run(fmt.Sprint(l), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, ideal := remembering(t, Options{}), newMemory() // what the primary would hold without an outage
					w.outage(20_050*time.Millisecond, 45*time.Second)
					var got, want int64
					var alone time.Duration // since the memory admitted the first unit of a window
					for start := time.Now(); time.Since(start) < 4*time.Minute; time.Sleep(100 * time.Millisecond) {
						for take(t, ideal, "usr=1", l, 1).Allowed {
							want++
						}
						units := w.drain("usr=1", l)
						got += units
						most := want + 1
						if w.stats().Open > 0 && (units > 0 || alone > 0) {
							alone += 100 * time.Millisecond
						}
						switch l.Step().Row.Refill {
						case step.Continuously:
							most += l.Burst()
						case step.Sliding: // the memory holds it as a bucket
							most = 2*l.Burst() + int64((time.Since(start)+alone)/(window/20)) + 1
						}
						if got > most {
							t.Fatalf("after %v: admitted %d, want at most %d; without the outage %d", time.Since(start), got, most, want)
						}
					}
					if got < want*3/4 {
						t.Errorf("admitted %d, without the outage %d", got, want)
					}
				})
			})
		}
	}
}
