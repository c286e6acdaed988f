// What becomes of units whose hand-back is not answered in time.

package shared

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// Units that Redis received are handed back, however late it says so. Units without
// any reply are lost, and no others.
func TestLostUnitsAreThoseThatRedisLacks(t *testing.T) {
	t.Parallel()
	const units = 7
	for name, tt := range map[string]struct {
		reply redistest.Step // to a hand-back
		lost  uint64
		holds int64
	}{
		"in time":       {redistest.Wait(0), 0, units},
		"a second late": {redistest.WaitReply(time.Second), 0, units},
		"none":          {redistest.FailReply(errLost), units, units}, // executed, but nobody can know
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			client := redistest.Script(server.Client())
			limiter := must(t, client, nil)
			redistest.Until(t, "Redis decides", func() bool {
				return take(t, limiter, "usr=before", ample, 1).Source == algorithms.Shared
			})
			server.Stop()
			redistest.Until(t, "the circuit opens", func() bool {
				take(t, limiter, "usr=before", ample, 1)
				return limiter.Stats().Fallback.Open
			})
			limit := algorithms.FixedWindow(100, 1_000*time.Hour)
			if d := take(t, limiter, "usr=1", limit, units); d.Source != algorithms.Local || !d.Allowed {
				t.Fatalf("got %+v, want it admitted locally", d)
			}
			handBack := "{usr=1}"
			client.Set(redistest.On(handBack, tt.reply))
			server.Continue()
			redistest.Until(t, "nothing is owed", func() bool {
				s := limiter.Stats().Fallback
				return !s.Open && s.Owed == 0
			})
			s := limiter.Stats().Fallback
			if s.Lost != tt.lost || s.HandedBack < units-tt.lost {
				t.Errorf("got %+v, want %d units lost", s, tt.lost)
			}
			if got := used(t, newRedis(t, server.Client(), nil), "usr=1", limit); got != tt.holds {
				t.Errorf("Redis holds %d units, want %d", got, tt.holds)
			}
		})
	}
}
