// Tests of Close: before, during and after requests.

package tests

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/internal/comeback"
)

// TestClose refuses held and later requests. Their units are back when it returns.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, total := newMemory(t), byIP("total", algorithms.SlidingWindowLog(10, time.Hour))
		m := newMiddleware(t, memory, nil, total, byIP("p", perSecond))
		q := newQueue(m)
		for _, name := range []string{"a", "b", "c", "d"} {
			q.send(name)
		}
		time.Sleep(1500 * ms)
		if err := m.Close(context.Background()); err != nil {
			t.Errorf("got error %v, want none", err)
		}
		if got := left(t, memory, total, "ip=192.0.2.1"); got != 8 {
			t.Errorf("got %d left, want 8, of 2 requests that were served", got)
		}
		q.send("e")
		q.want(t, map[string]string{
			"a": "served at 0s", "b": "served at 1s",
			"c": "Service Unavailable at 1.5s", "d": "Service Unavailable at 1.5s", "e": "Service Unavailable at 1.5s",
		})
		w := record(q.h, with(from("192.0.2.1"), "Name", "f"))
		checkUnavailable(t, w.Header(), w.Body.String())
		if v, err := m.Check(from("192.0.2.1")); v.Allowed || v.Status != http.StatusServiceUnavailable || err == nil {
			t.Errorf("got Check %+v and error %v, want 503 and an error", v, err)
		}
		if err := m.Close(context.Background()); err != nil {
			t.Errorf("second Close: got error %v, want none", err)
		}
	})
}

// TestCloseWhileDeciding: a request that is admitted just then is refused rather than held, and takes nothing.
func TestCloseWhileDeciding(t *testing.T) {
	memory, seen, served := newStill(t), new(eventLog), new(counter)
	p := byIP("p", algorithms.LeakyBucket(1, time.Hour).WithBurst(5))
	var m *ratelimit.Middleware
	limiter := limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
		err := memory.Allow(ctx, checks)
		if checks[0].Decision.Delay > 0 {
			err = errors.Join(err, m.Close(ctx))
		}
		return err
	})
	m = newMiddleware(t, limiter, &ratelimit.Options{Observers: []ratelimit.Observer{seen}}, p)
	h := m.Handler(served)
	record(h, from("192.0.2.1"))
	w := record(h, from("192.0.2.1"))
	checkUnavailable(t, w.Header(), w.Body.String())
	if got := left(t, memory, p, "ip=192.0.2.1"); w.Code != http.StatusServiceUnavailable || served.n.Load() != 1 || got != 4 {
		t.Errorf("got status %d, %d served and %d left, want 503, 1 and 4", w.Code, served.n.Load(), got)
	}
	if got := len(seen.of(ratelimit.Abandoned)); got != 1 {
		t.Errorf("got %d events, want 1", got)
	}
}

// TestCloseWithEndedContext releases what is held all the same.
func TestCloseWithEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMiddleware(t, newMemory(t), nil, byIP("p", perSecond))
		q := newQueue(m)
		q.send("a")
		q.send("b")
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if err := m.Close(ended); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v, want the context's or none", err)
		}
		q.want(t, map[string]string{"a": "served at 0s", "b": "Service Unavailable at 0s"})
		if err := m.Close(context.Background()); err != nil {
			t.Errorf("second Close: got error %v, want none", err)
		}
	})
}

// TestCloseWaits for returns, as long as its context allows; a limiter that hangs delays it for a second.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newMemory(t)
		limiter := limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
			if checks[0].Op == algorithms.Take {
				return memory.Allow(ctx, checks)
			}
			<-ctx.Done()
			return ctx.Err()
		})
		m := newMiddleware(t, limiter, &ratelimit.Options{Logger: quiet}, byIP("p", perSecond))
		q := newQueue(m)
		q.send("a")
		q.send("b")
		ctx, cancel := context.WithTimeout(context.Background(), 400*ms)
		defer cancel()
		if err := m.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(q.start) != 400*ms {
			t.Errorf("got error %v after %v, want the deadline's after 400ms", err, time.Since(q.start))
		}
		if err := m.Close(context.Background()); err != nil || time.Since(q.start) != time.Second {
			t.Errorf("got error %v after %v, want none after 1s", err, time.Since(q.start))
		}
		q.want(t, map[string]string{"a": "served at 0s", "b": "Service Unavailable at 1s"})
	})
}

// TestCloseLeavesWhatIsServed: requests in their handlers go on.
func TestCloseLeavesWhatIsServed(t *testing.T) {
	m := newMiddleware(t, newStill(t), nil, byIP("p", hourly))
	w := record(m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := m.Close(r.Context()); err != nil {
			t.Errorf("got error %v, want none", err)
		}
		w.WriteHeader(http.StatusAccepted)
	})), from("192.0.2.1"))
	if w.Code != http.StatusAccepted {
		t.Errorf("got status %d, want 202", w.Code)
	}
}

// TestReleasedAreSpread: clients that Close sends away come back at different seconds, each at its own key's second.
func TestReleasedAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMiddleware(t, newMemory(t), nil, byIP("each", hourly), forAll("all", algorithms.LeakyBucket(1, time.Second).WithBurst(100)))
		h := m.Handler(ok)
		slot := time.Now().UnixNano() / int64(4*time.Second)
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				w, key := record(h, from(fmt.Sprintf("192.0.2.%d", i))), fmt.Sprintf("ip=192.0.2.%d", i)
				if w.Code == http.StatusOK {
					return // the first one is not held
				}
				wait := http.Header{}
				headers.Draft.Write(wait, headers.Response{Denied: true, RetryAfter: time.Second + comeback.Jitter(4*time.Second, "", key, slot)})
				if got, want := retryAfter(t, w.Header()), retryAfter(t, wait); got != want {
					t.Errorf("%s: got Retry-After %d, want %d", key, got, want)
				}
			})
		}
		synctest.Wait()
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}

// TestCloseRace: with 100 requests coming and held, each is served or refused, none twice, and all units are settled.
func TestCloseRace(t *testing.T) {
	for range 20 {
		memory := newMemory(t)
		total := forAll("total", algorithms.SlidingWindowLog(100, time.Hour))
		m := newMiddleware(t, memory, nil, total, byIP("p", algorithms.LeakyBucket(1000, time.Second).WithBurst(100)))
		served := new(counter)
		h := m.Handler(served)
		var statuses [600]atomic.Int64
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { statuses[record(h, from("192.0.2.1")).Code].Add(1) })
		}
		for range 2 {
			wg.Go(func() {
				if err := m.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got, refused := statuses[200].Load(), statuses[503].Load(); got != served.n.Load() || got+refused != 100 {
			t.Errorf("got %d served, %d times 200 and %d times 503, want 100 in all", served.n.Load(), got, refused)
		}
		if got := left(t, memory, total, "const=all"); got != 100-served.n.Load() {
			t.Errorf("got %d left after %d were served", got, served.n.Load())
		}
	}
}

// TestReleaseOnShutdown: a server shuts down at once, though requests were held for an hour.
func TestReleaseOnShutdown(t *testing.T) {
	held := make(chan struct{})
	o := &ratelimit.Options{Observers: []ratelimit.Observer{ratelimit.ObserverFunc(func(_ context.Context, e ratelimit.Event) {
		if e.Kind == ratelimit.Decided && e.Verdict.Delay > 0 {
			close(held)
		}
	})}}
	m := newMiddleware(t, newStill(t), o, byIP("p", algorithms.LeakyBucket(1, time.Hour).WithBurst(2)))
	srv := httptest.NewServer(m.Handler(ok))
	defer srv.Close()
	srv.Config.RegisterOnShutdown(m.Release)
	get := func() int {
		res, err := srv.Client().Get(srv.URL)
		if err != nil {
			t.Error(err)
			return 0
		}
		defer func() { _ = res.Body.Close() }()
		return res.StatusCode
	}
	get()
	var wg sync.WaitGroup
	wg.Go(func() {
		if got := get(); got != http.StatusServiceUnavailable {
			t.Errorf("got status %d of the held request, want 503", got)
		}
	})
	<-held
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := errors.Join(srv.Config.Shutdown(ctx), m.Close(ctx)); err != nil {
		t.Error(err)
	}
	wg.Wait()
}
