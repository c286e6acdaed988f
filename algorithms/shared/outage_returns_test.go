// Returns that come while Redis is away: of requests that end in an outage, and of
// reservations whose final cost becomes known in it.

package shared

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/internal/redistest"
)

// settleAt settles one check of the policy "default", and returns its answer.
func settleAt(t *testing.T, l algorithms.Limiter, c algorithms.Check) algorithms.Decision {
	t.Helper()
	c.Policy = "default"
	checks := []algorithms.Check{c}
	if err := l.Allow(context.Background(), checks); err != nil {
		t.Fatalf("%v: %v", c, err)
	}
	return checks[0].Decision
}

// Two seconds after Redis is back, it has received each Return that it had certainly
// not executed, and each Return of a Concurrent limit, which names its units. No Return
// counts twice: neither if Redis had executed it, nor if its caller repeats it.
func TestReturnsOfAnOutageComeBack(t *testing.T) {
	refused, lost := (*world).refuses, (*world).loses
	for name, outage := range map[string]struct {
		begin    func(*world)
		executed bool // the primary has executed the Return
		unsure   bool // the limiter cannot know whether it has
	}{
		"the circuit is open":    {begin: (*world).trip},
		"one call is refused":    {begin: refused},
		"the Return gets lost":   {begin: lost, unsure: true},
		"only the reply is lost": {begin: lost, unsure: true, executed: true},
	} {
		for _, l := range append(everyAlgorithm(100, 10*time.Hour), algorithms.Concurrent(100, 10*time.Hour)) {
			t.Run(name+"/"+l.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, nil)
					w.take("usr=1", l, 3) // by a request that goes on
					back := algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Return, Cost: 5, Decision: w.take("usr=1", l, 5)}
					if outage.executed {
						settleAt(t, w.shared.store, back)
					}
					outage.begin(w)
					back.Policy = "default"
					checks := []algorithms.Check{back}
					lost := outage.unsure && l.Step().Row != step.Concurrent
					for range 2 {
						if err := w.Allow(t.Context(), checks); (err != nil) != lost {
							t.Errorf("got %v, want an error if a repetition could credit other units", err)
						}
					}
					w.recovers()
					n := used(t, w.shared.store, "usr=1", l)
					if n != 3 && !(lost && !outage.executed && n == 8) {
						t.Errorf("the primary holds %d units, want the 3 of the other request", n)
					}
				})
			})
		}
	}
}

// refuses lets the primary refuse calls, too few for the circuit to open.
func (w *world) refuses() { w.shared.fails(errRefused) }

// loses lets the replies of the primary get lost, too few for the circuit to open.
func (w *world) loses() { w.shared.fails(errLost) }

// Before any call meets Redis again, the Returns have freed their places.
func TestReturnsComeBeforeTheCircuitCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := newWorld(t, nil), algorithms.Concurrent(100, 10*time.Hour)
		var ended []algorithms.Decision
		for range 100 {
			ended = append(ended, w.take("usr=1", l, 1))
		}
		w.trip()
		for _, d := range ended {
			settleAt(t, w, algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Return, Cost: 1, Decision: d})
		}
		w.shared.fails(nil)
		redistest.Until(t, "the circuit is closed", func() bool { return w.stats().Open == 0 })
		if d := w.take("usr=1", l, 100); !d.Allowed || d.Source != algorithms.Shared {
			t.Errorf("got %+v, want all places free", d)
		}
	})
}

// A Return belongs to the window of its take. What others took in a later window stays
// charged.
func TestReturnsOfAnEndedWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := newWorld(t, nil), algorithms.FixedWindow(100, time.Minute)
		back := algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Return, Cost: 5, Decision: w.take("usr=1", l, 5)}
		w.trip()
		settleAt(t, w, back)
		time.Sleep(time.Minute)
		take(t, w.shared.store, "usr=1", l, 5) // another instance
		w.recovers()
		if n := used(t, w.shared.store, "usr=1", l); n != 5 {
			t.Errorf("the primary holds %d units, want the 5 of this window", n)
		}
	})
}

// After an outage no place is held for a request that has ended. The requests that run
// on keep theirs. A day's limit gets back what its reservations did not cost. Some
// requests end before the circuit opens, others while it is open.
func TestReturnsFreePlacesAfterAnOutage(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]struct {
		fault redistest.Fault
		sure  bool // Redis has certainly executed no Return of it
	}{
		"refused":      {redistest.Refuse(), true},
		"black hole":   {redistest.BlackHole(), false},
		"replies lost": {redistest.Swallow(), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			proxy := redistest.StartProxy(t, server.Addr())
			// On a busy machine, the takes before the outage must not time out.
			l := must(t, clientOf(t, proxy.Addr(), nil), &Options{Deadline: 500 * time.Millisecond, Logger: new(logRecords).logger()})
			direct := newRedis(t, server.Client(), nil)
			running, day := algorithms.Concurrent(13, 24*time.Hour), algorithms.FixedWindow(100_000, 48*time.Hour)
			var places, reserved []algorithms.Decision
			for range 13 {
				places = append(places, take(t, l, "const=all", running, 1))
			}
			for range 10 {
				reserved = append(reserved, take(t, l, "usr=1", day, 4000))
			}
			if n := used(t, direct, "const=all", running) + used(t, direct, "usr=1", day); n != 40_013 {
				t.Fatalf("Redis has charged %d units before the outage, want 40013", n)
			}
			end := func(requests ...int) {
				var ending sync.WaitGroup
				for _, i := range requests {
					ending.Go(func() {
						settleAt(t, l, algorithms.Check{Key: "const=all", Limit: running, Op: algorithms.Return, Cost: 1, Decision: places[i]})
						settleAt(t, l, algorithms.Check{Key: "usr=1", Limit: day, Op: algorithms.Return, Cost: 3000, Decision: reserved[i]})
					})
				}
				ending.Wait()
			}
			proxy.Set(outage.fault)
			end(0, 1)
			redistest.Until(t, "the circuit is open", func() bool {
				take(t, l, "usr=2", day, 1)
				return l.Stats().Fallback.Open > 0
			})
			end(2, 3, 4, 5, 6, 7, 8, 9)
			proxy.Set(redistest.Pass())
			redistest.Until(t, "the circuit is closed", func() bool { return l.Stats().Fallback.Open == 0 })
			redistest.Until(t, "no place is held, except by the 3 requests that run", func() bool {
				return used(t, direct, "const=all", running) == 3
			})
			charged := func() int64 { return used(t, direct, "usr=1", day) }
			if outage.sure {
				redistest.Until(t, "Redis counts the final costs of the day", func() bool { return charged() == 10_000 })
			}
			if n := charged(); n != 10_000 && n != 13_000 && n != 16_000 {
				t.Errorf("%d units of the day are charged, want 10000, and 3000 for each of the 2 Returns that Redis may have executed", n)
			}
		})
	}
}

// Redis goes away between the admission of units ahead of it and their charge. Their Return, in the outage, leaves charged
// what the request has cost.
func TestReturnsOfUnitsThatAnOutageOwes(t *testing.T) {
	t.Parallel()
	for _, limit := range []algorithms.Limit{algorithms.PerMonth(100, time.UTC), algorithms.TokenBucket(100, 100*24*time.Hour)} {
		t.Run(limit.String(), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			proxy := redistest.StartProxy(t, server.Addr())
			l := must(t, clientOf(t, proxy.Addr(), nil), &Options{Ahead: 50, Deadline: 500 * time.Millisecond, Logger: new(logRecords).logger()})
			direct := newRedis(t, server.Client(), nil)
			redistest.Until(t, "Redis decides", func() bool { return take(t, l, "usr=1", limit, 3).Source == algorithms.Shared })
			before := used(t, direct, "usr=1", limit) // a busy machine may have needed several takes
			proxy.Set(redistest.Refuse())
			l.views.certain(1)
			ahead := take(t, l, "usr=1", limit, 20)
			redistest.Until(t, "the units are owed", func() bool { return l.Stats().Fallback.Owed == 1 })
			d := settleAt(t, l, algorithms.Check{Key: "usr=1", Limit: limit, Op: algorithms.Return, Cost: 12, Decision: ahead})
			if ahead.Source != algorithms.Shared || d.Receipt.Units() != 8 || l.Stats().Fallback.Returns != 0 {
				t.Errorf("got %+v and %+v, want 20 units admitted ahead, and 12 of them off the debt", ahead, d)
			}
			proxy.Set(redistest.Pass())
			redistest.Until(t, "nothing is owed", func() bool { return l.Stats().Fallback.Owed == 0 })
			if n := used(t, direct, "usr=1", limit); n != before+8 {
				t.Errorf("Redis has charged %d units, want %d", n, before+8)
			}
		})
	}
}

// takenInSlots takes 5 units of two keys in two slots of a Cluster. It returns the limiter, another one for the same
// Cluster, the faults of the first one's client, and the Returns of the units.
func takenInSlots(t *testing.T, keys ...string) (l, direct *Limiter, hook *redistest.Client, returns []algorithms.Check) {
	t.Helper()
	client := redistest.StartCluster(t).Client()
	hook = redistest.Script(nil)
	client.AddHook(hook)
	l = must(t, client, &Options{Deadline: 500 * time.Millisecond, Logger: new(logRecords).logger()})
	returns = checksFor(algorithms.FixedWindow(100, 48*time.Hour), keys...)
	redistest.Until(t, "Redis decides", func() bool {
		for i := range returns {
			returns[i].Op, returns[i].Cost = algorithms.Take, 5
		}
		return l.Allow(t.Context(), returns) == nil && returns[0].Decision.Source == algorithms.Shared && returns[1].Decision.Source == algorithms.Shared
	})
	for i := range returns {
		returns[i].Op = algorithms.Return
	}
	return l, newRedis(t, client, nil), hook, returns
}

// When a slot of several settlements fails, the limiter sends the settlements of the slots
// before it no second time. The unit of another request stays charged.
func TestReturnsOfSeveralSlots(t *testing.T) {
	t.Parallel()
	l, direct, hook, checks := takenInSlots(t, "usr=1", "usr=late")
	others := make(map[string]int64) // a busy machine may have needed several calls
	for _, c := range checks {
		others[c.Key] = used(t, direct, c.Key, c.Limit) - 5
		take(t, direct, c.Key, c.Limit, 5) // of another request
	}
	hook.Set(redistest.On("{usr=late}", redistest.Fail(errRefused)))
	if err := l.Allow(t.Context(), checks); err != nil || checks[0].Decision.Source != algorithms.Shared || checks[1].Decision.Source != algorithms.Undecided {
		t.Fatalf("got %+v, %v, want the first Return made, and the second one kept", checks, err)
	}
	hook.Set()
	redistest.Until(t, "the second Return is made", func() bool { return l.Stats().Fallback.Returned == 1 && l.Stats().Fallback.Returns == 0 })
	for _, c := range checks {
		if got := used(t, direct, c.Key, c.Limit) - others[c.Key]; got != 5 {
			t.Errorf("%s: Redis holds %d units, want the 5 of the other request", c.Key, got)
		}
	}
}

// A Return whose slot was not asked, because the reply of a slot before it is late, is
// kept: Redis has certainly not executed it.
func TestReturnsOfSlotsThatWereNotAsked(t *testing.T) {
	t.Parallel()
	l, direct, hook, checks := takenInSlots(t, "usr=late", "usr=1")
	before := make(map[string]int64)
	for _, c := range checks {
		before[c.Key] = used(t, direct, c.Key, c.Limit)
	}
	hook.Set(redistest.On("{usr=late}", redistest.HoldReply()))
	if err := l.Allow(t.Context(), checks); err != nil || checks[0].Decision.Receipt.Units()+checks[1].Decision.Receipt.Units() != 0 {
		t.Fatalf("got %+v, %v, want the limiter to have both Returns", checks, err)
	}
	hook.Release(1)
	hook.Set()
	redistest.Until(t, "no Return waits", func() bool { return l.Stats().Fallback.Returns == 0 })
	for _, c := range checks {
		if got := before[c.Key] - used(t, direct, c.Key, c.Limit); got != 5 {
			t.Errorf("%s: %d units came back, want 5", c.Key, got)
		}
	}
	if got := l.Stats().Fallback.ReturnsLost; got != 0 {
		t.Errorf("%d Returns are lost, want none", got)
	}
}

// The bytes of a key are the caller's again when Allow has returned. A unit that is
// returned later still goes to the key of its take.
func TestLateReturnsKeepTheirKeys(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Script(server.Client())
	l := must(t, client, &Options{Deadline: 500 * time.Millisecond, Logger: new(logRecords).logger()})
	direct := newRedis(t, server.Client(), nil)
	limit := algorithms.FixedWindow(100, 48*time.Hour)
	redistest.Until(t, "Redis decides", func() bool { return take(t, l, "usr=before", limit, 1).Source == algorithms.Shared })
	client.Set(redistest.On("{usr=1}", redistest.InTurn(redistest.HoldReply(), redistest.Fail(errRefused))))
	text := []byte("usr=1")
	check := checkOf(unsafe.String(&text[0], len(text)), limit, 5)
	check.Fail = algorithms.FailClosed
	if err := l.Allow(t.Context(), []algorithms.Check{check}); !errors.Is(err, algorithms.ErrUnavailable) {
		t.Fatalf("got %v, want the call refused at its deadline", err)
	}
	copy(text, "usr=2")
	client.Release(1) // the reply says that the units were charged, and their Return fails
	redistest.Until(t, "the Return is made", func() bool { return l.Stats().Fallback.Returned == 1 })
	if got := used(t, direct, "usr=1", limit); got != 0 {
		t.Errorf("Redis holds %d units, want none", got)
	}
}
