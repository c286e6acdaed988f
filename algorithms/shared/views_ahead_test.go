// What is admitted ahead, and what asks.

package shared

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

func (v *views) counted() algorithms.Stats {
	var s algorithms.Stats
	v.addStats(&s)
	return s
}

// Clients that use 90 % of a bucket's rate ask for at most 1 % of their takes, and are never denied.
func TestHonestClientsHardlyAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := algorithms.TokenBucket(100, time.Minute)
		vs := aheadOf(4, 25, 10_000, newStateStore(), 1, 2*time.Millisecond)
		const takes = 4_000
		for i := range takes {
			d, _, _ := vs[i%4].ask(4, checkOf(fmt.Sprint("usr=", i%10), limit, 1))
			if !d.Allowed {
				t.Fatalf("take %d is denied: %+v", i, d)
			}
			time.Sleep(time.Minute / 900) // ten clients with 90 a minute each
		}
		var ahead, overdrawn uint64
		for _, v := range vs {
			v.close()
			s := v.counted().Ahead
			ahead, overdrawn = ahead+s.Admitted, overdrawn+s.Overdrawn
			if s.Unacknowledged != 0 {
				t.Errorf("got %d units without an acknowledgement, want none at the end", s.Unacknowledged)
			}
		}
		if ahead < takes*99/100 || overdrawn > 0 {
			t.Errorf("got %d of %d ahead and %d overdrawn, want 99 %% and none", ahead, takes, overdrawn)
		}
	})
}

// Close may see no charge of a call that is just being admitted. Then the call returns when Redis has charged it.
func TestAheadWhileCloseRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit, store := algorithms.TokenBucket(100, time.Hour), newStateStore()
		v := aheadOf(1, 20, 1_000, store, 1, time.Millisecond)[0]
		c, err := newCall([]algorithms.Check{checkOf("x", limit, 3)})
		if err != nil {
			t.Fatal(err)
		}
		if why := v.reserve(&c.items[0], v.now(), 1); why != askedNot {
			t.Fatalf("got reason %d to ask, want none", why)
		}
		v.close()
		v.owe(c.items)
		if n := used(t, &Limiter{top: store}, "x", limit); n != 3 {
			t.Errorf("got %d units charged, want 3", n)
		}
	})
}

// Each reason for which a call asks is counted.
func TestAheadAsksFor(t *testing.T) {
	limit := algorithms.TokenBucket(100, time.Hour)
	tests := map[string]struct {
		before func(v *views)
		check  algorithms.Check
		count  func(s *algorithms.Stats) uint64
	}{
		"nothing":   {func(*views) {}, checkOf("x", limit, 1), func(s *algorithms.Stats) uint64 { return s.Ahead.Admitted }},
		"near":      {func(v *views) { v.ask(4, checkOf("x", limit, 85)) }, checkOf("x", limit, 1), func(s *algorithms.Stats) uint64 { return s.Ahead.Near }},
		"a cost":    {func(*views) {}, checkOf("x", limit, 6), func(s *algorithms.Stats) uint64 { return s.Ahead.Allowance }},
		"units":     {func(v *views) { v.ask(4, checkOf("x", limit, 5)) }, checkOf("x", limit, 1), func(s *algorithms.Stats) uint64 { return s.Ahead.Allowance }},
		"busy":      {func(v *views) { v.charges.Add(maxCharges) }, checkOf("x", limit, 1), func(s *algorithms.Stats) uint64 { return s.Ahead.Busy }},
		"forgotten": {lose, checkOf("x", limit, 1), func(s *algorithms.Stats) uint64 { return s.Ahead.Unknown }},
		"closed":    {func(v *views) { v.closed.Store(true) }, checkOf("x", limit, 1), func(s *algorithms.Stats) uint64 { return s.Ahead.Trouble }},
		"a circuit": {func(v *views) { v.open = func() bool { return true } }, checkOf("x", limit, 1), func(s *algorithms.Stats) uint64 { return s.Ahead.Trouble }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := aheadOf(1, 20, 1_000, newStateStore(), 1, time.Millisecond)[0]
				tt.before(v)
				s := v.counted()
				before := tt.count(&s)
				v.ask(4, tt.check)
				if s = v.counted(); tt.count(&s) != before+1 {
					t.Errorf("got %+v, want one more", s.Ahead)
				}
				if name == "busy" {
					v.charges.Add(-maxCharges)
				}
				v.close()
			})
		})
	}
}

// lose lets all shards doubt unknown keys.
func lose(v *views) {
	for i := range v.shards {
		v.shards[i].lossy = time.Hour
	}
}

// Exact, FailClosed and free takes, calls with a trial, and limits that cannot be charged later ask.
func TestAheadIsForOrdinaryTakes(t *testing.T) {
	limit := algorithms.TokenBucket(100, time.Hour)
	closed, exact, trial := checkOf("x", limit, 1), checkOf("x", limit, 1), checkOf("y", limit, 1)
	closed.Fail, exact.Exact, trial.Op = algorithms.FailClosed, true, algorithms.Trial
	for name, checks := range map[string][]algorithms.Check{
		"exact": {exact}, "fails closed": {closed}, "free": {checkOf("x", limit, 0)}, "a trial beside": {checkOf("x", limit, 1), trial},
		"a log": {checkOf("x", algorithms.SlidingWindowLog(100, time.Hour), 1)}, "twice a key": {checkOf("x", limit, 1), checkOf("x", limit, 1)},
	} {
		synctest.Test(t, func(t *testing.T) {
			v := aheadOf(1, 20, 1_000, newStateStore(), 1, time.Millisecond)[0]
			v.certain(1)
			c, err := newCall(checks)
			if err != nil {
				t.Fatal(err)
			}
			if err := v.allow(context.Background(), c); err != nil || v.counted().Ahead.Admitted != 0 {
				t.Errorf("%s: got error %v and %+v, want it asked", name, err, v.counted().Ahead)
			}
			v.close()
		})
	}
}

// An instance admits ahead once it has been announced without a gap for so long that all others have counted it, and
// until it has failed to announce itself.
func TestAheadNeedsACertainCensus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &Options{Ahead: 20, Views: 1_000})
		limit := algorithms.TokenBucket(100, time.Hour)
		ahead := func(when string, want bool) {
			t.Helper()
			before := w.views.counted().Ahead.Admitted
			w.take("usr=1", limit, 1)
			if got := w.views.counted().Ahead.Admitted > before; got != want {
				t.Errorf("%s: ahead %t, want %t", when, got, want)
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		ahead("at first", false)
		time.Sleep(aheadAfter - 2*time.Second)
		ahead("a second early", false)
		time.Sleep(beatEvery)
		ahead("then", true)
		w.views.announced(w.views.now(), 1, false)
		ahead("when it could not announce itself", false)
		time.Sleep(aheadAfter + beatEvery)
		w.take("usr=1", limit, 1)
		ahead("later", true)
		w.views.close()
	})
}

// A Return of units whose charge has not been sent cancels them.
func TestReturnCancelsACharge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStateStore()
		v := aheadOf(1, 20, 1_000, store, 1, time.Millisecond)[0]
		for _, limit := range []algorithms.Limit{algorithms.TokenBucket(100, time.Hour), algorithms.FixedWindow(100, time.Hour)} {
			back := checkOf("usr=1", limit, 3)
			back.Decision, _, _ = v.ask(1, checkOf("usr=1", limit, 5))
			back.Op = algorithms.Return
			if d, _, _ := v.ask(1, back); d.Receipt.Units() != 2 {
				t.Errorf("%v: got %+v, want 2 units left on the receipt", limit, d)
			}
			time.Sleep(time.Second)
			if got := used(t, over(store), "usr=1", limit); got != 2 {
				t.Errorf("%v: got %d units charged, want 2", limit, got)
			}
		}
		v.close()
	})
}

// Eight limiters on one Redis: whatever a hostile client does, it gets at most the burst, the rate and the allowances.
// Close charges what it got.
func TestAheadBoundOnRedis(t *testing.T) {
	t.Parallel()
	const instances, burst, percent = 8, 96, 25
	server := redistest.Start(t)
	limit := algorithms.TokenBucket(1, time.Hour).WithBurst(burst)
	var all [instances]*Limiter
	for i := range all {
		all[i] = must(t, server.Client(), &Options{Ahead: percent, Instances: instances, Deadline: 10 * time.Second})
	}
	for _, l := range all { // each has seen an answer
		l.views.certain(instances)
		take(t, l, "usr=other", limit, 0)
	}
	var crowd sync.WaitGroup
	var mu sync.Mutex
	admitted, ahead := 0, uint64(0)
	for _, l := range all {
		for range 4 {
			crowd.Go(func() {
				for range 40 {
					l.views.certain(instances)
					d, err := algorithms.Allow(context.Background(), l, "usr=1", limit)
					if err != nil {
						t.Error(err)
					}
					if d.Allowed {
						mu.Lock()
						admitted++
						mu.Unlock()
					}
				}
			})
		}
	}
	crowd.Wait()
	for _, l := range all {
		ahead += l.Stats().Ahead.Admitted
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if n := l.Stats().Ahead.Unacknowledged; n != 0 {
			t.Errorf("got %d units without a charge after Close", n)
		}
	}
	if most := burst + burst*percent/100; admitted < burst || admitted > most || ahead == 0 {
		t.Errorf("got %d admitted, %d of them ahead, want %d to %d", admitted, ahead, burst, most)
	}
}

// A policy whose allowance is below one unit asks always, and a finding says so while it holds.
func TestPoliciesThatAlwaysAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := aheadOf(1, 20, 1_000, newStateStore(), 1, time.Millisecond)[0]
		v.ask(4, checkOf("x", algorithms.TokenBucket(100, time.Hour), 1))
		if got := v.alwaysAsk(); got != "" {
			t.Errorf("got %q, want nothing", got)
		}
		for i := range 5 {
			c := checkOf("x", algorithms.TokenBucket(4, time.Hour), 1)
			c.Policy = fmt.Sprint("small", i)
			v.ask(4, c)
		}
		if got, want := v.alwaysAsk(), "small0 (burst 4, 4 instances), small1 (burst 4, 4 instances), small2 (burst 4, 4 instances), and 2 more"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		for i := range 5 {
			v.asking.note(fmt.Sprint("small", i), 20)
		}
		if got := v.alwaysAsk(); got != "" {
			t.Errorf("got %q after the bursts are larger, want nothing", got)
		}
		v.close()
	})
}

// A policy that asks always keeps its name, whatever its caller makes of the bytes after the call.
func TestPoliciesThatAlwaysAskKeepTheirNames(t *testing.T) {
	v, bytes := newViews(10, 25, nil), []byte("small")
	v.live.Store(4)
	for _, burst := range []int64{4, 4, 5} {
		v.asking.note(unsafe.String(&bytes[0], len(bytes)), burst)
	}
	copy(bytes, "wrong")
	if got, want := v.alwaysAsk(), "small (burst 5, 4 instances)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The finding follows the number of instances, although nobody asks for findings.
func TestBeatsFindPoliciesThatAlwaysAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &Options{Ahead: 50, Views: 1_000, Instances: 4})
		found := func(live int64) (found bool) {
			w.shared.counts(live, nil)
			for range 2 { // until the finding ends, fewer instances must be live for a while
				time.Sleep(liveFor + beatEvery)
				w.take("usr=1", algorithms.TokenBucket(8, time.Hour), 1)
			}
			time.Sleep(beatEvery)
			var s algorithms.Stats
			w.report.addStats(&s)
			return s.Redis.Findings["PS204"]
		}
		for _, live := range []int64{4, 5, 4, 9} {
			if got := found(live); got != (live > 4) {
				t.Errorf("%d instances: found: %v", live, got)
			}
		}
	})
}

// Clients at half of their limits, over eight instances, hardly wait and overdraw nothing.
func TestHonestLoadOnRedis(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	const instances, clients, every, lasts = 8, 50, 100 * time.Millisecond, 3 * time.Second
	server := redistest.Start(t)
	limits := []algorithms.Limit{algorithms.TokenBucket(20, time.Second).WithBurst(100), algorithms.FixedWindow(100, 5*time.Second), algorithms.SlidingWindowCounter(100, 5*time.Second)}
	var all [instances]*Limiter
	for i := range all {
		all[i] = must(t, server.Client(), &Options{Ahead: 25, Instances: instances, Deadline: 10 * time.Second})
		all[i].views.certain(instances)
		take(t, all[i], "usr=other", limits[0], 1) // it learns Redis's clock
	}
	var crowd sync.WaitGroup
	for client := range clients {
		crowd.Go(func() {
			key, limit := fmt.Sprintf("usr=%d", client), limits[client%len(limits)]
			for i := range int(lasts / every) {
				time.Sleep(every)
				l := all[(client+i)%instances]
				l.views.certain(instances)
				if d := take(t, l, key, limit, 1); !d.Allowed {
					t.Errorf("%v: client %d is denied: %+v", limit, client, d)
				}
			}
		})
	}
	crowd.Wait()
	ahead, asked, overdrawn := uint64(0), uint64(0), uint64(0)
	for _, l := range all {
		_ = l.Close()
		s := l.Stats().Ahead
		ahead, overdrawn = ahead+s.Admitted, overdrawn+s.Overdrawn
		asked += s.Near + s.Allowance + s.Census + s.Busy + s.Unknown + s.Trouble
	}
	asked -= min(asked, instances) // about Redis's clock
	if t.Logf("%d ahead, %d asked", ahead, asked); asked*100 > ahead+asked || ahead == 0 || overdrawn > 0 {
		t.Errorf("%d ahead, %d asked, %d units overdrawn; want at most 1 %% asked and none overdrawn", ahead, asked, overdrawn)
	}
}
