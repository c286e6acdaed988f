// Units whose hand-back is not answered in time.

package shared

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/internal/redistest"
)

// Units that Redis received are handed back, however late it says so. Units without
// any reply are lost, and no others.
func TestLostUnitsAreThoseThatRedisLacks(t *testing.T) {
	t.Parallel()
	const units = 70 // more than other keys lose on a busy machine
	type test struct {
		reply redistest.Step // to a hand-back
		lost  uint64
		holds int64
	}
	atOnce(t, map[string]test{
		"in time":       {redistest.Wait(0), 0, units},
		"a second late": {redistest.WaitReply(time.Second), 0, units},
		"none":          {redistest.FailReply(errLost), units, units}, // executed, but the client cannot know
	}, func(t *testing.T, tt test) {
		server := redistest.Start(t)
		client := redistest.Script(server.Client())
		limiter := must(t, client, nil)
		redistest.Until(t, "Redis decides", func() bool {
			return take(t, limiter, "usr=before", ample, 1).Source == algorithms.Shared
		})
		server.Stop()
		redistest.Until(t, "the circuit opens", func() bool {
			take(t, limiter, "usr=before", ample, 1)
			return limiter.Stats().Fallback.Open > 0
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
			return s.Open == 0 && s.Owed == 0
		})
		s := limiter.Stats().Fallback
		if s.Lost < tt.lost || tt.lost == 0 && (s.Lost >= units || s.HandedBack < units) { // others may travel with them
			t.Errorf("got %+v, want %d units lost", s, tt.lost)
		}
		if got := used(t, newRedis(t, server.Client(), nil), "usr=1", limit); got != tt.holds {
			t.Errorf("Redis holds %d units, want %d", got, tt.holds)
		}
	})
}

// debtOf returns the debt of one unit of a key of the policy "default".
func debtOf(t *testing.T, key string, limit algorithms.Limit, now int64) *debt {
	t.Helper()
	var it step.Item
	c := algorithms.Check{Policy: "default", Key: key, Limit: limit, Cost: 1}
	if err := c.Item(&it); err != nil {
		t.Fatal(err)
	}
	d := &debt{key: it.Key.Clone(), whole: it.Limit, counts: it.Limit}
	d.state = d.counts.Force(d.counts.At(d.state, now), now, 1)
	return d
}

// Hand-backs that wait behind others until their time is over were not sent, so
// nothing of them is lost.
func TestQueuedHandBacksAreNotLost(t *testing.T) {
	t.Parallel()
	const keys = 64
	server := redistest.Start(t)
	client := redistest.Script(server.Client())
	limiter := must(t, client, &Options{Deadline: 200 * time.Millisecond, InFlight: 1})
	f, limit := limiter.fallback, algorithms.FixedWindow(100, 1_000*time.Hour)
	redistest.Until(t, "Redis decides", func() bool { return take(t, limiter, "usr=before", limit, 1).Source == algorithms.Shared })
	client.Set(redistest.WaitReply(150 * time.Millisecond))
	f.ledger.mu.Lock()
	for _, key := range manyKeys(keys) {
		d := debtOf(t, key, limit, f.now())
		f.ledger.debts[d.key] = d
	}
	f.ledger.mu.Unlock()
	f.handBack(time.Now().Add(100 * time.Millisecond))
	client.Set()
	redistest.Until(t, "nothing is owed", func() bool { s := limiter.Stats().Fallback; return s.Open == 0 && s.Owed == 0 })
	if s := limiter.Stats().Fallback; s.Lost > 0 || s.HandedBack != keys {
		t.Errorf("got %+v, want %d units handed back", s, keys)
	}
	for _, key := range manyKeys(keys) {
		if got := used(t, newRedis(t, server.Client(), nil), key, limit); got != 1 {
			t.Errorf("%s: Redis holds %d units, want 1", key, got)
		}
	}
}

// A late answer that says that Redis refused is no hand-back.
func TestLateAnswerOfABadKey(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Script(server.Client())
	limiter := must(t, client, nil)
	redistest.Until(t, "Redis decides", func() bool { return take(t, limiter, "usr=before", ample, 1).Source == algorithms.Shared })
	limit := algorithms.FixedWindow(100, 1_000*time.Hour)
	do(t, server.Client(), "lpush", limiter.StoredKey(algorithms.Check{Policy: "default", Key: "usr=1", Limit: limit}), "nonsense")
	f, before := limiter.fallback, uint64(0) // handed back, of a busy machine
	redistest.Until(t, "nothing else is owed", func() bool {
		s := limiter.Stats().Fallback
		before = s.HandedBack
		return s.Open == 0 && s.Owed == 0
	})
	client.Set(redistest.WaitReply(500 * time.Millisecond))
	d := debtOf(t, "usr=1", limit, f.now())
	f.ledger.mu.Lock()
	f.ledger.debts[d.key] = d
	f.ledger.mu.Unlock()
	if err := f.send(f.ledger.popDebts(f.now())[0]); err == nil {
		t.Error("the answer came in time")
	}
	redistest.Until(t, "the answer has come", func() bool {
		f.ledger.mu.Lock()
		defer f.ledger.mu.Unlock()
		return d.rest == nil
	})
	if s := limiter.Stats().Fallback; s.HandedBack > before {
		t.Errorf("got %+v: handed back, though Redis refused it", s)
	}
}
