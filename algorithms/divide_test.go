package algorithms_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// Under any traffic, all instances together admit at most what one limiter may: never more than its ceiling in an
// interval. Nor do they admit much less, if clients reach all of them.
func TestDivideIsACeiling(t *testing.T) {
	const instances = 7
	for _, limit := range []algorithms.Limit{
		algorithms.TokenBucket(100, time.Minute), algorithms.TokenBucket(100, time.Minute).WithBurst(10), algorithms.LeakyBucket(50, time.Second),
		algorithms.SlidingWindowLog(100, time.Minute), algorithms.SlidingWindowCounter(100, time.Minute), algorithms.FixedWindow(100, time.Minute), algorithms.PerDay(100, nil),
	} {
		clock := newClock()
		var all []algorithms.Limiter
		for range instances {
			all = append(all, algorithms.Divide(newMemory(t, &algorithms.MemoryOptions{Now: clock.now}), instances))
		}
		r := rand.New(rand.NewPCG(1, 2))
		var at []time.Time
		begin, step := clock.now(), limit.Window()/200
		for range 2_000 {
			for range 3 {
				d, err := algorithms.Allow(t.Context(), all[r.IntN(instances)], "usr=1", limit)
				if err != nil {
					t.Fatal(err)
				}
				if d.Allowed {
					at = append(at, clock.now())
				}
			}
			clock.add(step)
		}
		within := func(from, to time.Time) (n int64) {
			for _, a := range at {
				if !a.Before(from) && a.Before(to) {
					n++
				}
			}
			return n
		}
		windows := int64(clock.now().Sub(begin) / limit.Window())
		most := limit.Burst() + limit.Requests()*windows
		if !limit.Algorithm().Continuous() {
			most = limit.Requests() * (windows + 1)
		}
		if n := int64(len(at)); n > most || n < (most-limit.Burst())*instances*(limit.Burst()/instances)/limit.Burst()*9/10 {
			t.Errorf("%v: got %d in %d windows, want at most %d, and nearly that", limit, n, windows, most)
		}
		if limit.Algorithm() == algorithms.SlidingWindowLog(1, time.Second).Algorithm() {
			for _, from := range at {
				if n := within(from, from.Add(time.Minute)); n > 100 {
					t.Fatalf("%v: got %d from %v on", limit, n, from)
				}
			}
		}
	}
}

// At once, the instances admit the whole parts of a limit, and each unit comes back at its instance.
func TestDivideAtOnce(t *testing.T) {
	for _, tt := range []struct {
		limit     algorithms.Limit
		instances int
		each      int64
	}{
		{algorithms.TokenBucket(100, time.Minute), 8, 12}, {algorithms.FixedWindow(100, 24*time.Hour), 4, 25}, {algorithms.SlidingWindowLog(9, time.Minute), 9, 1},
		{algorithms.Concurrent(10, time.Minute), 3, 3}, {algorithms.PerMonth(10, nil), 1, 10}, {algorithms.Nobody(), 5, 0},
	} {
		l := algorithms.Divide(newMemory(t, &algorithms.MemoryOptions{Now: newClock().now}), tt.instances)
		checks := []algorithms.Check{{Policy: "p", Key: "usr=1", Limit: tt.limit, Cost: tt.each + 1}, {Policy: "q", Key: "usr=1", Limit: tt.limit}}
		if err := l.Allow(t.Context(), checks); err != nil || checks[0].Decision.Allowed || checks[0].Limit != tt.limit || checks[1].Limit != tt.limit {
			t.Errorf("%v: got %+v, error %v, want a denial of %d, and the caller's limits", tt.limit, checks, err, tt.each+1)
		}
		if d, err := algorithms.AllowN(t.Context(), l, "usr=1", tt.limit, tt.each); err != nil || d.Allowed != (tt.each > 0) || d.Remaining != 0 {
			t.Errorf("%v: got %+v, error %v, want all %d", tt.limit, d, err, tt.each)
		}
	}
}

func TestDivideRefusesLessThanAUnit(t *testing.T) {
	l := algorithms.Divide(newMemory(t, nil), 8)
	for _, limit := range []algorithms.Limit{algorithms.TokenBucket(100, time.Minute).WithBurst(7), algorithms.FixedWindow(7, time.Minute), algorithms.Concurrent(1, time.Second), {}} {
		if _, err := algorithms.Allow(t.Context(), l, "usr=1", limit); !errors.Is(err, algorithms.ErrInvalid) {
			t.Errorf("%v: got error %v, want ErrInvalid", limit, err)
		}
	}
}
