// Tests of the lines that the limiter keeps.

package comeback

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/draw"
)

// A fleet is a Memory that several instances share.
type fleet struct {
	*algorithms.Memory
	instances int
	down      bool
	asked     int
}

func (f *fleet) Stats() (s algorithms.Stats) {
	s.Fallback.Instances = f.instances
	return s
}

func (f *fleet) Allow(ctx context.Context, checks []algorithms.Check) error {
	if f.asked++; f.down {
		return errors.New("down")
	}
	err := f.Memory.Allow(ctx, checks)
	for i := range checks {
		checks[i].Decision.Source = algorithms.Shared
	}
	return err
}

// tell denies a request, and returns the µs until it may return.
func tell(t *Table, limit algorithms.Limit, cost int64, wait, reset time.Duration) int64 {
	d := Denial{Policy: "p", Key: "usr=1", Client: "usr=1", Limit: limit, Cost: cost, Wait: wait, Reset: reset, Fleet: true}
	return t.Wait(context.Background(), &d).Microseconds()
}

// TestFleetTellsAsOneInstance: four instances and one give the same instants, whatever the costs and pauses, as long as
// all denials are of the limit's own grid of instants.
func TestFleetTellsAsOneInstance(t *testing.T) {
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		limit := algorithms.TokenBucket(draw.Of(v, int64(1), 5, 100), time.Second)
		unit := limit.Window().Microseconds() / limit.Requests()
		pauses := draw.Some(v.Int(2, 60), func() int64 { return draw.Of(v, int64(0), 0, 1, 3, 17, 400) }) // quarters of a unit
		synctest.Test(t, func(t *testing.T) {
			shared := &fleet{Memory: algorithms.NewMemory(nil), instances: 4}
			all := []*Table{New(shared), New(shared), New(shared), New(shared)}
			one, begin := New(algorithms.NewMemory(nil)), time.Now()
			for i, pause := range pauses {
				time.Sleep(time.Duration(pause*unit/4) * time.Microsecond)
				wait := unit - time.Since(begin).Microseconds()%unit
				d := Denial{Policy: "p", Key: "usr=1", Limit: limit, Cost: 1, Wait: time.Duration(wait) * time.Microsecond}
				want := one.Wait(context.Background(), &d).Microseconds()
				if got := tell(all[i%4], limit, 1, d.Wait, 0); got != want {
					t.Fatalf("denial %d: got %d µs, want %d", i, got, want)
				}
			}
		})
	})
}

// TestFleetIsBounded: no denial returns earlier than honest, or more than 30 s later, whatever limits, costs, and waits are.
func TestFleetIsBounded(t *testing.T) {
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		type denial struct {
			pause, wait, reset time.Duration
			cost               int64
			limit              algorithms.Limit
		}
		var all []denial
		for range v.Int(1, 40) {
			d := denial{
				pause: time.Duration(v.Int64(0, 3e6)) * time.Microsecond,
				wait:  time.Duration(v.Int64(0, 2e9)) * time.Microsecond,
				cost:  v.Int64(1, 1e9),
			}
			if v.Bool() {
				d.wait, d.cost = d.wait%time.Second, d.cost%5+1
			}
			d.reset = d.wait + time.Duration(v.Int64(0, 1e8))*time.Microsecond
			window := time.Duration(v.Int64(1e4, 1e9)) * time.Microsecond
			requests := v.Int64(1, 1000)
			d.limit = draw.Of(v,
				algorithms.TokenBucket(requests, window), algorithms.SlidingWindowCounter(requests, window), algorithms.SlidingWindowLog(requests, window),
			)
			if d.limit.Validate() == nil {
				all = append(all, d)
			}
		}
		synctest.Test(t, func(t *testing.T) {
			shared := &fleet{Memory: algorithms.NewMemory(nil), instances: 2}
			tables := []*Table{New(shared), New(shared)}
			for i, d := range all {
				time.Sleep(d.pause)
				got, wait := tell(tables[i%2], d.limit, d.cost, d.wait, d.reset), d.wait.Microseconds()
				if got < wait || got > wait+maxLater.Microseconds() || !d.limit.Algorithm().Continuous() && got > d.reset.Microseconds() {
					t.Fatalf("%v, cost %d: got %d µs, want %d, at most 30 s later, and at most %v of a window", d.limit, d.cost, got, wait, d.reset)
				}
			}
		})
	})
}

// TestLoneClientOfAFleet: if it returns as told, or later, and is denied again, it hears the honest wait of the bucket each time.
func TestLoneClientOfAFleet(t *testing.T) {
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		requests := v.Int64(1, 300)
		pauses := draw.Some(v.Int(1, 60), func() int64 { return v.Int64(0, 3_000) }) // ms
		cost := v.Int64(1, 4)
		limit := algorithms.TokenBucket(requests, time.Minute).WithBurst(4)
		synctest.Test(t, func(t *testing.T) {
			shared := &fleet{Memory: algorithms.NewMemory(nil), instances: 3}
			tables := []*Table{New(shared), New(shared), New(shared)}
			for i, pause := range pauses {
				time.Sleep(time.Duration(pause) * time.Millisecond)
				check := []algorithms.Check{{Policy: "p", Key: "usr=1", Limit: limit, Cost: cost}}
				if err := shared.Allow(t.Context(), check); err != nil {
					t.Fatal(err)
				}
				d := &check[0].Decision
				if d.Allowed {
					continue
				}
				if got, want := tell(tables[i%3], limit, cost, d.RetryAfter, d.ResetAfter), d.RetryAfter.Microseconds(); got != want {
					t.Fatalf("denial %d: got %d µs, want the honest %d", i, got, want)
				}
				time.Sleep(d.RetryAfter)
				if err := shared.Allow(t.Context(), check); err != nil || !check[0].Decision.Allowed {
					t.Fatalf("back as told: got %v, %v", check[0].Decision, err)
				}
			}
		})
	})
}

// TestDenialsAtOneInstant: denials that meet at several instances have one place each, although each asks while
// another one's line is not yet forced to its end.
func TestDenialsAtOneInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowFleet{fleet: fleet{Memory: algorithms.NewMemory(nil), instances: 4}}
		var wg sync.WaitGroup
		told := make([]int64, 4)
		for i := range told {
			table := New(slow)
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Microsecond)
				d := Denial{Policy: "p", Key: "usr=1", Limit: aSecond, Cost: 1, Wait: 400 * time.Millisecond, Fleet: true}
				told[i] = table.Wait(t.Context(), &d).Milliseconds()
			})
		}
		wg.Wait()
		slices.Sort(told)
		if want := []int64{400, 1400, 2400, 3400}; !slices.Equal(told, want) {
			t.Errorf("got %d ms, want %d", told, want)
		}
	})
}

// A slowFleet answers a take at once, and after 2 ms what follows.
type slowFleet struct {
	mu sync.Mutex
	fleet
}

func (s *slowFleet) Allow(ctx context.Context, checks []algorithms.Check) error {
	if checks[0].Op == algorithms.Force {
		time.Sleep(2 * time.Millisecond)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fleet.Allow(ctx, checks)
}

// TestLineOfAnInstanceAlone: the limiter is not asked for a line if it decided alone, cannot answer, or counts one instance,
// or if the limit is too slow for a line. A line that the limiter cannot keep is the instance's own.
func TestLineOfAnInstanceAlone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		instances int
		down      bool
		local     bool
		limit     algorithms.Limit
		wait      time.Duration
		asked     int
		apart     int64 // s between two denials
	}{
		"fleet":    {2, false, false, aSecond, time.Second, 3, 1},
		"one":      {1, false, false, aSecond, time.Second, 0, 1},
		"down":     {2, true, false, aSecond, time.Second, 2, 1},
		"local":    {2, false, true, aSecond, time.Second, 0, 1},
		"long":     {2, false, false, aSecond, time.Hour, 0, 1},
		"too slow": {2, false, false, algorithms.TokenBucket(1, time.Minute), time.Minute, 0, 0},
	} {
		shared := &fleet{Memory: algorithms.NewMemory(nil), instances: tt.instances, down: tt.down}
		table := New(shared)
		d := Denial{Policy: "p", Key: "usr=1", Limit: tt.limit, Cost: 1, Wait: tt.wait, Fleet: !tt.local}
		first := table.Wait(t.Context(), &d)
		apart := (table.Wait(t.Context(), &d) - first).Round(100 * time.Millisecond)
		if first != tt.wait || apart != time.Duration(tt.apart)*time.Second || shared.asked != tt.asked {
			t.Errorf("%s: got %v, %v apart, and %d calls, want %v, %d s apart, and %d", name, first, apart, shared.asked, tt.wait, tt.apart, tt.asked)
		}
	}
}

// TestPollerOfAFleet: a client that ignores its wait hears at most 30 s more, and its line ends when it stops.
func TestPollerOfAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &fleet{Memory: algorithms.NewMemory(nil), instances: 2}
		tables, last := []*Table{New(shared), New(shared)}, int64(0)
		for i := range 600 {
			time.Sleep(100 * time.Millisecond)
			wait := time.Second - time.Duration(i%10)*100*time.Millisecond
			if last = tell(tables[i%2], aSecond, 1, wait, 0); last > (wait + maxLater).Microseconds() {
				t.Fatalf("got %d µs, want at most 30 s more than %v", last, wait)
			}
		}
		if last < maxLater.Microseconds() {
			t.Errorf("got %d µs in the end, want 30 s more than honest", last)
		}
		time.Sleep(time.Duration(last)*time.Microsecond + 3*time.Second)
		if got := tell(tables[0], aSecond, 1, time.Second, 0); got != 1_000_000 {
			t.Errorf("after the line: got %d µs, want the honest second", got)
		}
	})
}
