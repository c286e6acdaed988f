// The units that several instances admit together without Redis.

package shared

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// An admission happened at an instant between began and ended.
type admission struct{ began, ended time.Time }

// A gatherer asks all instances at once for more than a limit admits.
type gatherer struct {
	limit    algorithms.Limit
	mu       sync.Mutex
	admitted []admission
	ended    atomic.Int64 // calls
}

func (g *gatherer) press(t *testing.T, s *Limiter, every time.Duration, stop <-chan struct{}) {
	pause := time.NewTicker(every)
	defer pause.Stop()
	for {
		select {
		case <-stop:
			return
		case <-pause.C:
		}
		began := time.Now()
		d, err := algorithms.Allow(context.Background(), s, "limit="+g.limit.String(), g.limit)
		ended := time.Now()
		if err != nil || d.Source == algorithms.Undecided {
			t.Errorf("got %+v, %v", d, err)
		}
		g.ended.Add(1)
		if d.Allowed {
			g.mu.Lock()
			g.admitted = append(g.admitted, admission{began, ended})
			g.mu.Unlock()
		}
	}
}

// bound returns what n instances that lose Redis may admit in d: a burst through
// Redis, another one without it, in shares that are rounded up, and the rate.
func bound(l algorithms.Limit, n int, d time.Duration) float64 {
	return 2*float64(l.Burst()) + float64(l.Requests())*d.Seconds()/l.Window().Seconds() + float64(n)
}

// verify checks every span of time that begins and ends with an admission. Early
// admissions come on top: they were local while Redis still decided others.
func (g *gatherer) verify(t *testing.T, n int, early uint64) {
	t.Helper()
	slices.SortFunc(g.admitted, func(a, b admission) int { return a.began.Compare(b.began) })
	worst, worstBound, worstIn := 0, 1.0, time.Duration(0)
	for i, first := range g.admitted {
		last := first.ended
		for j, a := range g.admitted[i:] {
			if a.ended.After(last) {
				last = a.ended
			}
			d := last.Sub(first.began)
			if most := bound(g.limit, n, d) + float64(early); float64(j+1)/most > float64(worst)/worstBound {
				worst, worstBound, worstIn = j+1, most, d
			}
		}
	}
	report := t.Logf
	if float64(worst) > worstBound {
		report = t.Errorf
	}
	report("%d instances, %v: %d admitted in %v, of at most %.1f", n, g.limit, worst, worstIn, worstBound)
}

func (g *gatherer) between(from, to time.Time) (n int) {
	for _, a := range g.admitted {
		if a.began.After(from) && a.ended.Before(to) {
			n++
		}
	}
	return n
}

// Instances that learned of each other from Redis admit together, without it,
// about what the limit does.
func TestOutageOfManyInstances(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	counts := []int{1, 4, 8}
	var servers []*redistest.Server
	var limiters [][]*Limiter
	var all [][]*gatherer
	stop := make(chan struct{})
	var wg sync.WaitGroup
	dismiss := sync.OnceFunc(func() {
		close(stop)
		wg.Wait()
	})
	t.Cleanup(dismiss)
	for i, n := range counts {
		servers = append(servers, redistest.Start(t))
		all = append(all, []*gatherer{
			{limit: algorithms.TokenBucket(50, time.Second).WithBurst(20)},
			{limit: algorithms.TokenBucket(5, time.Second)},
			{limit: algorithms.SlidingWindowLog(5, time.Second)},
		})
		limiters = append(limiters, startInstances(t, servers[i], n))
		for _, s := range limiters[i] {
			for _, g := range all[i] {
				wg.Go(func() { g.press(t, s, 4*time.Millisecond, stop) })
			}
		}
	}
	time.Sleep(700 * time.Millisecond)
	early := make([]uint64, len(counts)) // that were decided without a Redis that was there: by a busy machine
	for i, s := range servers {
		for _, limiter := range limiters[i] {
			early[i] += limiter.Stats().Fallback.Local
		}
		s.Kill()
	}
	// Wait until all have been alone for a while, and then as long as one of
	// eight instances waits twice for its part of five per second.
	for _, limiter := range slices.Concat(limiters...) {
		redistest.Until(t, "the circuit is open", func() bool { return limiter.Stats().Fallback.Open > 0 })
	}
	time.Sleep(500 * time.Millisecond)
	from, before := time.Now(), asked(all)
	time.Sleep(3250 * time.Millisecond)
	to, after := time.Now(), asked(all)
	dismiss()
	for i, n := range counts {
		measured := 0
		for _, g := range all[i] {
			g.verify(t, n, early[i])
			if g.wantShares(t, n, after[g]-before[g], from, to) {
				measured++
			}
		}
		if measured == 0 {
			t.Errorf("%d instances: no limit was overloaded, so nothing was measured", n)
		}
	}
}

// wantShares wants n instances together to admit most of the limit, if enough was
// asked. It reports whether that was the case.
func (g *gatherer) wantShares(t *testing.T, n int, asked int64, from, to time.Time) bool {
	t.Helper()
	took := to.Sub(from)
	want := 0.75 * float64(g.limit.Requests()) * took.Seconds() / g.limit.Window().Seconds()
	if float64(asked) < 2*want {
		t.Logf("%d instances, %v: %d asked in %v: no overload, this machine is too busy", n, g.limit, asked, took)
		return false
	}
	if got := g.between(from, to); float64(got) < want {
		t.Errorf("%d instances, %v: %d admitted in %v, want at least %.1f", n, g.limit, got, took, want)
	}
	return true
}

func asked(all [][]*gatherer) map[*gatherer]int64 {
	ended := make(map[*gatherer]int64)
	for _, gs := range all {
		for _, g := range gs {
			ended[g] = g.ended.Load()
		}
	}
	return ended
}

// startInstances returns Limiters that know of each other.
func startInstances(t *testing.T, server *redistest.Server, n int) (limiters []*Limiter) {
	t.Helper()
	for range n {
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		t.Cleanup(func() { _ = client.Close() })
		limiters = append(limiters, must(t, client, &Options{
			// Long enough not to pass before the server is killed: while Redis
			// answers some instances and not others, both sides admit.
			Deadline: 200 * time.Millisecond,
		}))
	}
	redistest.Until(t, "each instance knows of all", func() bool {
		for _, s := range limiters {
			s.fallback.beat()
		}
		return !slices.ContainsFunc(limiters, func(s *Limiter) bool { return s.Stats().Fallback.Instances != n })
	})
	return limiters
}
