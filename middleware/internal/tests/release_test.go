// Tests of Release, before and beside Close.

package tests

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// TestRelease refuses held requests and requests that would be held, charges them nothing, and serves others. Close
// then refuses all.
func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, seen := newMemory(t), new(eventLog)
		total := byIP("total", algorithms.SlidingWindowLog(10, time.Hour))
		candidate := algorithms.SlidingWindowLog(20, time.Hour)
		total.Candidate = &candidate
		shadow := byIP("shadow", algorithms.SlidingWindowLog(10, time.Hour))
		shadow.Shadow = true
		m := newMiddleware(t, memory, &ratelimit.Options{Observers: []ratelimit.Observer{seen}, Logger: quiet}, total, shadow, byIP("p", perSecond))
		q := newQueue(m)
		for _, name := range []string{"a", "b", "c"} {
			q.send(name)
		}
		time.Sleep(500 * ms)
		m.Release()
		m.Release()
		q.send("d") // would be held
		time.Sleep(5 * time.Second)
		q.send("e") // comes when nothing waits
		q.want(t, map[string]string{
			"a": "served at 0s", "b": "Service Unavailable at 500ms", "c": "Service Unavailable at 500ms",
			"d": "Service Unavailable at 500ms", "e": "served at 5.5s",
		})
		trial := ratelimit.Policy{Name: "total~candidate", Limit: candidate}
		for p, want := range map[*ratelimit.Policy]int64{&total: 8, &shadow: 8, &trial: 18} {
			if got := left(t, memory, *p, "ip=192.0.2.1"); got != want {
				t.Errorf("%s: got %d left, want %d, of 2 requests that were served", p.Name, got, want)
			}
		}
		if got := len(seen.of(ratelimit.Abandoned)); got != 3 || len(seen.of(ratelimit.Unregistered)) != 0 {
			t.Errorf("got %d Abandoned and %d Unregistered, want 3 and none before Close", got, len(seen.of(ratelimit.Unregistered)))
		}
		if err := errors.Join(m.Update(total), m.Close(context.Background())); err != nil {
			t.Error(err)
		}
		if got := record(q.h, from("192.0.2.2")).Code; got != http.StatusServiceUnavailable {
			t.Errorf("got status %d after Close, want 503", got)
		}
	})
}

// TestReleaseServesOthers: requests that no leaky bucket admits later are decided as before, with their headers.
func TestReleaseServesOthers(t *testing.T) {
	leaky := byIP("leaky", algorithms.LeakyBucket(1, time.Hour).WithBurst(2))
	leaky.Skip = func(r *http.Request) bool { return r.Header.Get("Name") == "" }
	m := newMiddleware(t, newStill(t), nil, byIP("p", perHour(4)), leaky)
	m.Release()
	var got []int
	for _, name := range []string{"", "a", "a", "a", "", ""} {
		r := from("192.0.2.1")
		if name != "" {
			with(r, "Name", name)
		}
		w := record(m.Handler(ok), r)
		got = append(got, w.Code)
		if w.Code == 503 {
			checkUnavailable(t, w.Header(), w.Body.String())
		}
	}
	if want := []int{200, 200, 503, 503, 200, 200}; !slices.Equal(got, want) {
		t.Errorf("got statuses %v, want %v", got, want)
	}
	if got := record(m.Handler(ok), from("192.0.2.1")); got.Code != 429 {
		t.Errorf("got status %d of the fifth request that counts, want 429", got.Code)
	}
}

// TestReleaseReturnsAllTakes, also those under a limit that came from elsewhere, and the costs.
func TestReleaseReturnsAllTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, table := newMemory(t), overrides.NewMemory()
		costly, brought := lateByIP("costly", daily, 30), byIP("brought", daily)
		brought.LimitOf = func(*http.Request) (algorithms.Limit, error) { return perHour(50), nil }
		override(t, table, "costly", "ip=192.0.2.1", ratelimit.Override{Limit: perHour(90)})
		m := newMiddleware(t, memory, &ratelimit.Options{Overrides: table}, costly, brought, byIP("p", perSecond))
		q := newQueue(m)
		q.send("a")
		q.send("b")
		m.Release()
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
		q.want(t, map[string]string{"a": "served at 0s", "b": "Service Unavailable at 0s"})
		costly.Limit, brought.Limit = perHour(90), perHour(50)
		for p, want := range map[*ratelimit.Policy]int64{&costly: 60, &brought: 49} {
			if got := left(t, memory, *p, "ip=192.0.2.1"); got != want {
				t.Errorf("%s: got %d left, want %d", p.Name, got, want)
			}
		}
	})
}

// TestCloseUnregistersOnce, however many Closes there are at the same time.
func TestCloseUnregistersOnce(t *testing.T) {
	seen := new(eventLog)
	m := newMiddleware(t, newStill(t), &ratelimit.Options{Observers: []ratelimit.Observer{seen}}, byIP("p", hourly))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			m.Release()
			if err := m.Close(context.Background()); err != nil {
				t.Error(err)
			}
			_ = m.Update(byIP("p", hourly)) // ErrClosed, or not yet
		})
	}
	wg.Wait()
	events := seen.of(ratelimit.Unregistered)
	if len(events) != 1 || events[0].Middleware != m || seen.events[len(seen.events)-1].Kind != ratelimit.Unregistered {
		t.Errorf("got %+v of %d events, want one Unregistered, the last", events, len(seen.events))
	}
}

// TestReleaseThenSettle: a request that is in its handler at Release is settled as before, and Close waits for it.
func TestReleaseThenSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, p := newStill(t), lateByIP("tokens", daily, 10)
		m := newMiddleware(t, slowToSettle(memory, func(context.Context) error { time.Sleep(800 * ms); return nil }), nil, p)
		record(m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			m.Release()
			settleAll(t, 4)(w, r)
		})), from("192.0.2.1"))
		start := time.Now()
		if err := m.Close(context.Background()); err != nil || time.Since(start) != 800*ms {
			t.Errorf("Close took %v, %v; want 800ms", time.Since(start), err)
		}
		wantBook(t, memory, book{"tokens": 96}, p)
	})
}
