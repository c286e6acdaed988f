// Tests of Policy.ChargeDenied: denials that cost.

package middleware_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// TestChargedDenials: who asks again and again waits longer, one burst's time at the most, and is told so honestly.
func TestChargedDenials(t *testing.T) {
	second := time.Second
	tests := []struct {
		limit algorithms.Limit
		waits []time.Duration // told by the denials that follow one limit
		exact bool
	}{
		{algorithms.TokenBucket(3, 3*time.Second), []time.Duration{2 * second, 3 * second, 4 * second}, true},
		{algorithms.TokenBucket(3, 3*time.Second), []time.Duration{2 * second, 3 * second, 4 * second, 5 * second, 5 * second}, false},
		{algorithms.TokenBucket(3, second), []time.Duration{666_668 * time.Microsecond, second + time.Microsecond}, false},
		{algorithms.FixedWindow(3, 10*time.Second), []time.Duration{10 * second, 20 * second, 20 * second, 20 * second}, true},
		{algorithms.SlidingWindowLog(3, 10*time.Second), []time.Duration{11 * second, 11 * second}, false},
		{algorithms.SlidingWindowCounter(3, 10*time.Second), []time.Duration{21 * second, 21 * second}, false},
	}
	for _, tt := range tests {
		t.Run(tt.limit.Algorithm().String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := byIP("p", tt.limit)
				p.ChargeDenied = true
				memory := newMemory(t)
				m := newMiddleware(t, memory, nil, p)
				for range 3 {
					check(t, m, from("192.0.2.1"))
				}
				var wait time.Duration
				for i, want := range tt.waits {
					v, err := m.Check(from("192.0.2.1"))
					synctest.Wait()
					if wait = v.RetryAfter; err != nil || v.Allowed || wait != want || v.Policies[0].Decision.RetryAfter != want {
						t.Fatalf("denial %d: got %+v, %v; want a wait of %v", i+1, v, err, want)
					}
				}
				p.ChargeDenied = false
				free := newMiddleware(t, memory, nil, p)
				time.Sleep(wait - time.Microsecond)
				if tt.exact {
					if v, _ := free.Check(from("192.0.2.1")); v.Allowed {
						t.Error("allowed a microsecond early")
					}
				}
				time.Sleep(time.Microsecond)
				if v, _ := free.Check(from("192.0.2.1")); !v.Allowed {
					t.Errorf("got %+v after the wait, want it allowed", v)
				}
			})
		})
	}
}

// TestChargedDenialsByTheCalendar: months and days are of several lengths, and no wait is too short for that.
func TestChargedDenialsByTheCalendar(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		limit algorithms.Limit
		begin time.Time
		cost  int64
		waits []time.Duration // told by the denials that follow one burst of 3
	}{
		{"before a short month", algorithms.PerMonth(3, nil), time.Date(2001, 1, 31, 12, 0, 0, 0, time.UTC), 1, []time.Duration{12 * time.Hour, 684 * time.Hour, 684 * time.Hour}},
		{"before a long month", algorithms.PerMonth(3, nil), time.Date(2001, 2, 28, 12, 0, 0, 0, time.UTC), 1, []time.Duration{12 * time.Hour, 756 * time.Hour, 756 * time.Hour}},
		{"on a long day", algorithms.PerDay(3, newYork), time.Date(2001, 10, 28, 0, 0, 0, 0, newYork), 1, []time.Duration{25 * time.Hour, 49 * time.Hour, 49 * time.Hour}},
		{"before a long day", algorithms.PerDay(3, newYork), time.Date(2001, 10, 27, 23, 0, 0, 0, newYork), 3, []time.Duration{28 * time.Hour}},
		{"exactly two limits", algorithms.FixedWindow(4, time.Hour), noon, 2, []time.Duration{time.Hour, 2 * time.Hour}},
		{"before a short day", algorithms.PerDay(3, newYork), time.Date(2001, 3, 31, 23, 0, 0, 0, newYork), 1, []time.Duration{time.Hour, 24 * time.Hour, 24 * time.Hour}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clock := newHandClock(tt.begin)
			memory, p := newMemoryWith(t, algorithms.MemoryOptions{Now: clock.now}), byIP("p", tt.limit)
			p.ChargeDenied, p.Cost = true, costOf(tt.cost)
			m := newMiddleware(t, memory, nil, p)
			for range tt.limit.Requests() / tt.cost {
				check(t, m, from("192.0.2.1"))
			}
			var wait time.Duration
			for i, want := range tt.waits {
				if wait = check(t, m, from("192.0.2.1")).RetryAfter; wait != want {
					t.Errorf("denial %d: got a wait of %v, want %v", i+1, wait, want)
				}
			}
			clock.advance(wait)
			if v := check(t, m, from("192.0.2.1")); !v.Allowed {
				t.Errorf("got %+v after the wait, want it allowed", v)
			}
		})
	}
}

// TestChargedDenialsAreHonest: whatever was taken and denied before, who waits as long as was told is admitted.
func TestChargedDenialsAreHonest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		requests, window := rapid.Int64Range(1, 6).Draw(t, "requests"), rapid.SampledFrom([]time.Duration{time.Second, 7 * time.Second, time.Hour}).Draw(t, "window")
		limit := rapid.SampledFrom([]algorithms.Limit{
			algorithms.TokenBucket(requests, window), algorithms.TokenBucket(requests, window).WithBurst(3), algorithms.LeakyBucket(requests, window),
			algorithms.FixedWindow(requests, window), algorithms.SlidingWindowLog(requests, window), algorithms.SlidingWindowCounter(requests, window),
			algorithms.PerDay(requests, nil), algorithms.PerMonth(requests, nil),
		}).Draw(t, "limit")
		clock := newHandClock(noon.Add(rapid.SampledFrom([]time.Duration{0, -300 * 24 * time.Hour, 1234567 * time.Microsecond}).Draw(t, "begin")))
		memory := algorithms.NewMemory(&algorithms.MemoryOptions{Now: clock.now})
		p, cost := byIP("p", limit), int64(0)
		p.ChargeDenied, p.Cost = true, func(*http.Request) int64 { return cost }
		m := algorithms.Must(ratelimit.New(memory, &ratelimit.Options{Logger: quiet}, p))
		for range rapid.IntRange(1, 12).Draw(t, "tries") {
			cost = rapid.Int64Range(1, limit.Burst()).Draw(t, "cost")
			v, err := m.Check(from("192.0.2.1"))
			if err != nil {
				t.Fatal(err)
			}
			if v.Allowed || rapid.Bool().Draw(t, "impatient") {
				clock.advance(time.Duration(rapid.Int64Range(0, limit.Window().Microseconds()/3).Draw(t, "pause")) * time.Microsecond)
				continue
			}
			clock.advance(v.RetryAfter)
			if after, err := m.Check(from("192.0.2.1")); err != nil || !after.Allowed {
				t.Fatalf("%v: denied with %+v after a wait of %v, %v", limit, after.Policies, v.RetryAfter, err)
			}
		}
	})
}

// TestOnlyOwnDenialsAreCharged: neither another policy's, nor what no wait helps, nor what costs nothing.
func TestOnlyOwnDenialsAreCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, seen := newStill(t), new(eventLog)
		own, other := byIP("own", hourly), byIP("other", algorithms.TokenBucket(1, time.Hour))
		own.ChargeDenied, own.Cost = true, func(r *http.Request) int64 { return r.ContentLength }
		other.Skip = func(r *http.Request) bool { return r.ContentLength != 1 }
		m := newMiddleware(t, memory, &ratelimit.Options{Observer: seen}, own, other)
		for _, tt := range []struct {
			name    string
			cost    int64
			allowed bool
			left    int64
		}{
			{"both admit", 1, true, 9}, {"the other denies", 1, false, 9}, {"more than the burst", 11, false, 9},
			{"it denies", 10, false, 0}, {"nothing, in debt", 0, false, 0},
		} {
			r := from("192.0.2.1")
			r.ContentLength = tt.cost
			v, err := m.Check(r)
			synctest.Wait()
			if got := left(t, memory, own, "ip=192.0.2.1"); err != nil || v.Allowed != tt.allowed || got != tt.left {
				t.Errorf("%s: got %v, %v and %d left, want %v and %d", tt.name, v.Allowed, err, got, tt.allowed, tt.left)
			}
		}
		if settled := seen.of(ratelimit.Settled); len(settled) != 1 {
			t.Errorf("got %d charges, want 1", len(settled))
		}
	})
}

// TestExact: where a state changes by more than what is admitted, no memory of an earlier answer will do.
func TestExact(t *testing.T) {
	s := &spy{Limiter: newStill(t)}
	outcome, charged, late := byIP("outcome", hourly), byIP("charged", hourly), lateByIP("late", hourly, 1)
	outcome.ChargeIf, charged.ChargeDenied = func(int) bool { return true }, true
	check(t, newMiddleware(t, s, nil, byIP("plain", hourly), outcome, charged, late), from("192.0.2.1"))
	for _, c := range s.calls[0] {
		if want := c.Policy == "outcome" || c.Policy == "charged"; c.Exact != want {
			t.Errorf("%s: got Exact %v, want %v", c.Policy, c.Exact, want)
		}
	}
}

// TestDenialsOfAShareAreFree: this process alone has only a share of the limit, whose waits nobody here could tell.
func TestDenialsOfAShareAreFree(t *testing.T) {
	for _, l := range []algorithms.Limit{
		algorithms.TokenBucket(12, 12*time.Second), algorithms.LeakyBucket(12, 12*time.Second), algorithms.FixedWindow(12, 12*time.Second),
		algorithms.SlidingWindowLog(12, 12*time.Second), algorithms.SlidingWindowCounter(12, 12*time.Second),
	} {
		t.Run(l.Algorithm().String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				alone := newShared(t, redistest.Script(nil, redistest.Fail(errors.New("down"))), shared.Options{Share: 25})
				p, seen := byIP("p", l), new(eventLog)
				p.ChargeDenied = true
				m := newMiddleware(t, alone, &ratelimit.Options{Observer: seen, Logger: quiet}, p)
				v := check(t, m, from("192.0.2.1"))
				for v.Allowed {
					v = check(t, m, from("192.0.2.1"))
				}
				for range 3 {
					v = check(t, m, from("192.0.2.1"))
					synctest.Wait()
				}
				time.Sleep(v.RetryAfter)
				if after := check(t, m, from("192.0.2.1")); !v.Degraded || !after.Allowed || len(seen.of(ratelimit.Settled)) != 0 {
					t.Errorf("got %+v after a wait of %v, and %d charges; want it allowed, and none", after, v.RetryAfter, len(seen.of(ratelimit.Settled)))
				}
			})
		})
	}
}

// TestRefusalsOfAFullMemoryAreFree: it has counted nothing of them.
func TestRefusalsOfAFullMemoryAreFree(t *testing.T) {
	memory, p, seen := newMemoryWith(t, algorithms.MemoryOptions{MaxKeys: 1}), byIP("p", algorithms.TokenBucket(1, time.Hour)), new(eventLog)
	p.ChargeDenied = true
	m := newMiddleware(t, memory, &ratelimit.Options{Observer: seen}, p)
	check(t, m, from("192.0.2.1"))
	check(t, m, from("192.0.2.1")) // a denial, which is not evicted for a second
	refused := check(t, m, from("192.0.2.2"))
	if charges := seen.of(ratelimit.Settled); refused.Allowed || refused.RetryAfter != time.Second || len(charges) != 1 {
		t.Errorf("got %+v and %d charges, want a wait of a second, and no more than the other's charge", refused, len(charges))
	}
}
