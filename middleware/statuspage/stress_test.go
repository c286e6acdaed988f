package statuspage_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/statuspage"
)

// TestStress: pages are read, Middlewares come, change and go, observers call them, and requests come in each of the
// page's periods. Nothing hangs. PENSTOCK_STRESS says for how long, e.g. 2m.
func TestStress(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("PENSTOCK_STRESS"))
	if err != nil {
		length = 300 * time.Millisecond
	}
	for begun := time.Now(); time.Since(begun) < length; {
		synctest.Test(t, stress)
	}
}

func stress(t *testing.T) {
	const rounds = 40
	page, memory := statuspage.New(nil), algorithms.NewMemory(nil)
	curious := ratelimit.ObserverFunc(func(_ context.Context, e ratelimit.Event) {
		e.Middleware.Findings()
		e.Middleware.TopDenied("p", 1)
		e.Middleware.Policies()
	})
	made := func(name string) *ratelimit.Middleware {
		return ratelimit.Must(ratelimit.New(memory, &ratelimit.Options{Observers: []ratelimit.Observer{page, curious}}, byIP(name, hourly)))
	}
	m := made("p")
	var wg sync.WaitGroup
	each := func(work func(round int)) {
		for range 2 {
			wg.Go(func() {
				for round := range rounds {
					work(round)
					time.Sleep(5 * time.Second) // virtual: a period of the page
				}
			})
		}
	}
	each(func(int) { record(m.Handler(ok), from("192.0.2.1")) })
	each(func(int) { look(t, page) })
	each(func(round int) {
		if err := m.Update(byIP("p", algorithms.TokenBucket(int64(round+1), time.Hour))); err != nil {
			t.Error(err)
		}
	})
	each(func(round int) {
		other := made(fmt.Sprint("other", round))
		record(other.Handler(ok), from("192.0.2.1"))
		if err := other.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A hangingLimiter has Stats that hang.
type hangingLimiter struct {
	algorithms.Limiter
	stats chan struct{}
}

func (l hangingLimiter) Stats() (s algorithms.Stats) {
	<-l.stats
	return s
}

// TestRequestsDoNotWaitForThePage: a request that makes the page look at the limiters does not wait for that.
func TestRequestsDoNotWaitForThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, hangs := statuspage.New(nil), hangingLimiter{algorithms.NewMemory(nil), make(chan struct{})}
		m := shownOn(t, page, hangs, ratelimit.Options{LimiterName: "hanging"}, byIP("p", hourly))
		begun := time.Now()
		for range 5 {
			time.Sleep(6 * time.Second)
			record(m.Handler(ok), from("192.0.2.1"))
		}
		if waited := time.Since(begun); waited != 30*time.Second {
			t.Errorf("the requests took %v, want 30s", waited)
		}
		close(hangs.stats)
		synctest.Wait()
	})
	synctest.Test(t, func(t *testing.T) {
		page, panics := statuspage.New(nil), panickingLimiter{algorithms.NewMemory(nil)}
		m := shownOn(t, page, panics, ratelimit.Options{LimiterName: "panicking"}, byIP("p", hourly))
		for range 3 {
			time.Sleep(6 * time.Second)
			record(m.Handler(ok), from("192.0.2.1"))
			synctest.Wait()
		}
	})
}

// A panickingLimiter has Stats that panic.
type panickingLimiter struct{ algorithms.Limiter }

func (panickingLimiter) Stats() algorithms.Stats { panic("on purpose") }

// TestOutageIsOneSentence, whatever the reason of the failures.
func TestOutageIsOneSentence(t *testing.T) {
	for _, reason := range []string{"unavailable", "timeout", "overload", "failover", "capacity", "configuration", "internal"} {
		synctest.Test(t, func(t *testing.T) {
			page := statuspage.New(nil)
			limiter := &counted{Memory: algorithms.NewMemory(nil)}
			s := &limiter.stats
			s.Shared, s.Fallback.Open, s.Fallback.Trips, s.Redis.Errors = true, 1, 1, map[string]uint64{reason: 5}
			shownOn(t, page, limiter, ratelimit.Options{}, byIP("p", hourly))
			look(t, page)
			time.Sleep(4 * time.Second)
			v := look(t, page)
			if v.Summary != "No request came in the last minute." || v.Health.Text != "Redis unavailable" || time.Since(v.Health.Since) != 4*time.Second {
				t.Errorf("%s: got %q and the badge %+v, want Redis unavailable for 4 s in the badge only", reason, v.Summary, v.Health)
			}
		})
	}
}
