// Pairs of takes without the primary, and what the primary receives afterwards.

package shared

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func TestFallbackModesOfPairs(t *testing.T) {
	const local, open, closed = algorithms.FailLocal, algorithms.FailOpen, algorithms.FailClosed
	otherwise := func(fail algorithms.FailureMode, cost int64) algorithms.Check {
		return fivePerHour("b", fail, cost, algorithms.TakeElse)
	}
	reserved := func(fail algorithms.FailureMode, cost int64) algorithms.Check {
		return fivePerHour("b", fail, cost, algorithms.TakeReserved)
	}
	testModes(t, map[string]modeTest{
		"the first fits":             {modeChecks{localTake("a", 1), otherwise(local, 1)}, "+lc +l", nil},
		"the second fits":            {modeChecks{localTake("a", 6), otherwise(local, 1)}, "-l +lc", nil},
		"none fits":                  {modeChecks{localTake("a", 6), otherwise(local, 6)}, "-l -l", nil},
		"a reserve":                  {modeChecks{localTake("a", 1), reserved(local, 1)}, "+lc +lc", nil},
		"a reserve alone":            {modeChecks{localTake("a", 6), reserved(local, 1)}, "-l +lc", nil},
		"a denied reserve":           {modeChecks{localTake("a", 1), reserved(local, 6)}, "+l -l", nil},
		"another denies":             {modeChecks{localTake("a", 1), otherwise(local, 1), localTake("c", 6)}, "+l +l -l", nil},
		"the second is open":         {modeChecks{localTake("a", 6), otherwise(open, 6)}, "+u +u", nil},
		"the second is closed":       {modeChecks{openTake("a", 1), reserved(closed, 1)}, "", algorithms.ErrUnavailable},
		"only the first is closed":   {modeChecks{closedTake("a", 1), reserved(local, 1)}, "+lc +lc", nil},
		"a candidate of a pair":      {modeChecks{localTake("a", 6), otherwise(local, 6), localInstead("c", 1)}, "-l -l +lc", nil},
		"a candidate of an open one": {modeChecks{localTake("a", 1), otherwise(open, 1), localInstead("c", 1)}, "+u +u +u", nil},
		"a pair of pairs":            {modeChecks{localTake("a", 1), otherwise(open, 1), fivePerHour("c", open, 1, algorithms.TakeElse)}, "", algorithms.ErrInvalid},
	})
}

// ask makes a call of a tenant's share and the capacity that the tenants share.
func (w *world) ask(tenant string, share, capacity algorithms.Limit) []algorithms.Check {
	w.t.Helper()
	checks := []algorithms.Check{
		{Policy: "default", Key: tenant, Limit: share, Cost: 1},
		{Policy: "default", Key: "capacity", Limit: capacity, Cost: 1, Op: algorithms.TakeReserved},
	}
	if err := w.Allow(context.Background(), checks); err != nil {
		w.t.Fatal(err)
	}
	return checks
}

// In an outage, an instance of four admits a quarter of the capacity, and every request within a quarter of a share.
// Afterwards, each key is charged for what it was admitted for, and for nothing else.
func TestSharesHoldInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const instances, minute = 4, 60
		capacity, share := algorithms.TokenBucket(400, time.Second), algorithms.TokenBucket(40, time.Second)
		w := newWorld(t, &Options{Instances: instances})
		w.trip()
		admitted := map[string]int{}
		var modest, last int
		for i := range minute * 1_000 {
			tenant := "hog"
			if i%200 == 0 { // 5 per second
				tenant, modest = "modest", modest+1
			}
			if algorithms.Allowed(w.ask(tenant, share, capacity)) {
				admitted[tenant]++
				last = i
			}
			time.Sleep(time.Millisecond)
		}
		if admitted["modest"] != modest {
			t.Errorf("got %d of %d requests of the modest tenant admitted, want all: it kept to its share", admitted["modest"], modest)
		}
		all, most := admitted["modest"]+admitted["hog"], minute*100+2*100
		if all > most || all < minute*100*97/100 {
			t.Errorf("got %d admitted in a minute, want nearly a quarter of the capacity, and at most %d", all, most)
		}
		if last < minute*1_000-100 {
			t.Errorf("got nothing admitted after %d ms", last)
		}
		w.recovers()
		for _, key := range []string{"modest", "hog", "capacity"} {
			if got := used(t, w.shared.store, key, capacity); got > 0 {
				t.Errorf("got %d units of %s in use 2 s later, want none: what was admitted has drained", got, key)
			}
		}
	})
}

// Afterwards the primary charges each key of a pair that the memory has charged, and no other.
func TestPairsAreOwedWhereTheyWereCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.trip()
		plan, credits := algorithms.TokenBucket(3, 1_000*time.Hour), algorithms.TokenBucket(5, 1_000*time.Hour)
		ask := func(who string) []algorithms.Check {
			checks := []algorithms.Check{
				{Policy: "default", Key: who + "|plan", Limit: plan, Cost: 1},
				{Policy: "default", Key: who + "|credits", Limit: credits, Cost: 1, Op: algorithms.TakeElse},
			}
			if err := w.Allow(context.Background(), checks); err != nil {
				t.Fatal(err)
			}
			return checks
		}
		ask("usr=1")
		var checks []algorithms.Check
		for range 5 {
			checks = ask("usr=2")
		}
		back := checks[1] // the fifth was charged to the credits
		back.Op = algorithms.Return
		if err := w.Allow(context.Background(), []algorithms.Check{back}); err != nil {
			t.Fatal(err)
		}
		w.recovers()
		for key, want := range map[string]int64{"usr=1|plan": 1, "usr=1|credits": 0, "usr=2|plan": 3, "usr=2|credits": 1} {
			l := credits
			if key[6:] == "plan" {
				l = plan
			}
			if got := used(t, w.shared.store, key, l); got != want {
				t.Errorf("%s: got %d units charged after the outage, want %d", key, got, want)
			}
		}
	})
}

// A remembered denial of the first of a pair denies no call, and a denial of a pair is asked for again.
func TestDenialsOfPairsAreNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &Options{Views: 100})
		capacity, share := algorithms.TokenBucket(4, time.Hour), algorithms.TokenBucket(2, time.Hour)
		w.drain("usr=1", share)
		if !algorithms.Allowed(w.ask("usr=1", share, capacity)) {
			t.Error("got denied, want an ordinary take of the capacity: it is not full")
		}
		w.drain("capacity", capacity)
		for range 2 {
			if !algorithms.Allowed(w.ask("usr=2", share, capacity)) {
				t.Error("got denied, want admitted by the reserve, whatever is remembered of the capacity")
			}
		}
		for range 2 {
			if algorithms.Allowed(w.ask("usr=2", share, capacity)) {
				t.Error("got admitted, want denied: the share is used up")
			}
		}
	})
}
