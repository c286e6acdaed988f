package fleet

import (
	"testing"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// TestModelStoresTrimmedLogs brings a log to an instant at which its first entry
// has expired, by a Return that finds nothing to give back. The model must store
// the sum of the entries that are left: the next Return takes the last of them.
func TestModelStoresTrimmedLogs(t *testing.T) {
	const key, ms = "k", 1_000
	log := step.NewLimit(step.SlidingWindowLog, 3, 1_000*ms)
	s := newServer(func(string, int64) {})
	call := func(now int64, op step.Op, charged int64) {
		s := &script{server: s, now: now, keys: []string{key}, limits: []step.Limit{log}}
		items := []step.Item{s.item(op, 1, 1, 1)}
		items[0].Receipt = step.Receipt{Units: 1, T: charged, Row: log.Row}
		s.call(items)
	}
	call(1_000*ms, step.Take, 0)
	call(1_600*ms, step.Take, 0)
	if held := s.states[key].state; held.N != 2 {
		t.Fatalf("after two takes, the key holds %d units, want 2", held.N)
	}
	call(2_100*ms, step.Return, 1_000*ms)
	if held := s.states[key].state; held.N != 1 {
		t.Errorf("after the first entry has expired, the key holds %d units, want 1", held.N)
	}
	call(2_200*ms, step.Return, 1_600*ms)
	if held := s.states[key]; held != nil {
		t.Errorf("after the Return of the last unit, the key holds %d units, want none", held.state.N)
	}
}
