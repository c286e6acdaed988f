// A slot that moves.

package shared

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A slot that moves opens no circuit, although every call of the slot fails: its master
// answers, and serves its other slots.
func TestTryAgainOpensNoCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := redistest.Script(nil, redistest.On("evalsha", redistest.Fail(trouble.ScriptError("TRYAGAIN Multiple keys request during rehashing of slot"))))
		l := must(t, c, nil)
		for range 100 {
			if d := take(t, l, "usr=1", perDay, 0); d.Source != algorithms.Local {
				t.Fatalf("got %+v, want a local decision", d)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if s := l.Stats(); s.Fallback.Trips != 0 || s.Redis.Errors[trouble.Failover] == 0 {
			t.Errorf("got %d trips and the errors %v, want no trip", s.Fallback.Trips, s.Redis.Errors)
		}
	})
}
