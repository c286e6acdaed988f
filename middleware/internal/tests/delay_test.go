// Tests of requests that leaky buckets hold until their turn.

package tests

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// A queue sends requests to a handler, one after the other, and notes how they end.
type queue struct {
	h     http.Handler
	start time.Time
	mu    sync.Mutex
	wg    sync.WaitGroup
	ends  map[string]string // how a request ended, and when
}

// newQueue returns a queue for m, in a bubble.
func newQueue(m *ratelimit.Middleware) *queue {
	q := &queue{start: time.Now(), ends: make(map[string]string)}
	q.h = m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { q.note(r, "served") }))
	return q
}

func (q *queue) note(r *http.Request, end string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ends[r.Header.Get("Name")] += end + " at " + time.Since(q.start).String()
}

// send sends a request and returns when it is served, refused or held. The function ends its context.
func (q *queue) send(name string) context.CancelFunc {
	ctx, cancel := context.WithCancel(context.Background())
	r := with(from("192.0.2.1").WithContext(ctx), "Name", name)
	q.wg.Go(func() {
		defer cancel()
		if w := record(q.h, r); w.Code != http.StatusOK {
			q.note(r, http.StatusText(w.Code))
		}
	})
	synctest.Wait()
	return cancel
}

// want waits for all requests, and compares.
func (q *queue) want(t *testing.T, want map[string]string) {
	t.Helper()
	q.wg.Wait()
	for name, end := range want {
		if got := q.ends[name]; got != end {
			t.Errorf("%s: got %q, want %q", name, got, end)
		}
	}
	if len(q.ends) != len(want) {
		t.Errorf("got %v, want %v", q.ends, want)
	}
}

var perSecond = algorithms.LeakyBucket(1, time.Second).WithBurst(4)

// TestHeldUntilTheirTurn: requests are served in order, at the instants that were promised.
func TestHeldUntilTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(newMiddleware(t, newMemory(t), nil, byIP("p", perSecond)))
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			q.send(name)
		}
		time.Sleep(2500 * ms)
		q.send("f")
		time.Sleep(time.Minute)
		q.send("g")
		q.want(t, map[string]string{
			"a": "served at 0s", "b": "served at 1s", "c": "served at 2s", "d": "served at 3s",
			"e": "Too Many Requests at 0s", "f": "served at 4s", "g": "served at 1m2.5s",
		})
	})
}

// TestHeldForTheLongest delay of several policies.
func TestHeldForTheLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(newMiddleware(t, newMemory(t), nil, byIP("p", perSecond), byIP("plain", hourly),
			forAll("slow", algorithms.LeakyBucket(1, 3*time.Second).WithBurst(3))))
		for _, name := range []string{"a", "b", "c", "d"} {
			q.send(name)
		}
		q.want(t, map[string]string{
			"a": "served at 0s", "b": "served at 3s", "c": "served at 6s", "d": "Too Many Requests at 0s",
		})
	})
}

// TestHangUp: a client that hangs up is not served, and its units go back; its place in the queue only if it is the
// newest.
func TestHangUp(t *testing.T) {
	for _, tt := range []struct{ who, last string }{{"c", "served at 2s"}, {"b", "served at 3s"}} {
		t.Run(tt.who, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen, memory := new(eventLog), newMemory(t)
				total, global := byIP("total", algorithms.TokenBucket(10, 24*time.Hour)), forAll("global", algorithms.SlidingWindowLog(100, 24*time.Hour))
				q := newQueue(newMiddleware(t, memory, &ratelimit.Options{Observers: []ratelimit.Observer{seen}}, total, byIP("p", perSecond), global))
				q.send("a")
				hangUp := map[string]context.CancelFunc{"b": q.send("b"), "c": q.send("c")}
				time.Sleep(500 * ms)
				hangUp[tt.who]()
				synctest.Wait()
				if got := left(t, memory, total, "ip=192.0.2.1"); got != 8 {
					t.Errorf("got %d left of the other policy, want 8", got)
				}
				if got := left(t, memory, global, "const=all"); got != 98 {
					t.Errorf("got %d left of the private policy, want 98", got)
				}
				q.send("d")
				want := map[string]string{
					"a": "served at 0s", "b": "served at 1s", "c": "served at 2s", "d": tt.last,
					tt.who: "Service Unavailable at 500ms",
				}
				q.want(t, want)
				abandoned := seen.of(ratelimit.Abandoned)
				if len(abandoned) != 1 || abandoned[0].Verdict.Allowed || abandoned[0].Verdict.Status != http.StatusServiceUnavailable {
					t.Errorf("got %+v, want one event of a refused request", abandoned)
				}
				if got := len(seen.of(ratelimit.Decided)); got != 4 {
					t.Errorf("got %d requests decided, want 4", got)
				}
			})
		})
	}
}

// TestHangUpOverHTTP: the server notices it, and the next request gets the place.
func TestHangUpOverHTTP(t *testing.T) {
	gone, held := make(chan struct{}), make(chan struct{})
	o := &ratelimit.Options{Observers: []ratelimit.Observer{ratelimit.ObserverFunc(func(_ context.Context, e ratelimit.Event) {
		switch {
		case e.Kind == ratelimit.Abandoned:
			close(gone)
		case e.Verdict.Delay == time.Hour:
			close(held)
		}
	})}}
	memory := newStill(t)
	p := byIP("p", algorithms.LeakyBucket(1, time.Hour).WithBurst(3))
	m := newMiddleware(t, memory, o, p)
	srv := httptest.NewServer(m.Handler(ok))
	defer srv.Close()
	get := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
		if err != nil {
			return err
		}
		res, err := srv.Client().Do(r)
		if err == nil {
			err = res.Body.Close()
		}
		return err
	}
	if err := get(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-held; cancel() }()
	if err := get(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got error %v, want the cancellation", err)
	}
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Fatal("the request was still held a minute after its client had gone")
	}
	if got := left(t, memory, p, "ip=127.0.0.1"); got != 2 {
		t.Errorf("got %d places left, want 2", got)
	}
}

// TestCheckDoesNotHold: the caller waits for the delay.
func TestCheckDoesNotHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, start := newMiddleware(t, newMemory(t), nil, byIP("p", perSecond)), time.Now()
		for i := range 4 {
			if v := check(t, m, from("192.0.2.1")); !v.Allowed || v.Delay != time.Duration(i)*time.Second {
				t.Errorf("request %d: got %+v, want a delay of %d s", i, v, i)
			}
		}
		if got := time.Since(start); got != 0 {
			t.Errorf("got held for %v, want not at all", got)
		}
		if v := check(t, m, from("192.0.2.1")); v.Allowed || v.Delay != 0 {
			t.Errorf("got %+v, want it denied", v)
		}
	})
}

// TestReturnFails: the client's request is refused, and the log reports the failure.
func TestReturnFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, log := newMemory(t), new(logRecords)
		limiter := limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
			if checks[0].Op != algorithms.Take {
				return errDown
			}
			return memory.Allow(ctx, checks)
		})
		q := newQueue(newMiddleware(t, limiter, &ratelimit.Options{Logger: log.logger()}, byIP("p", perSecond)))
		q.send("a")
		q.send("b")()
		q.want(t, map[string]string{"a": "served at 0s", "b": "Service Unavailable at 0s"})
		if got := log.lines(); len(got) != 1 || !strings.Contains(got[0], "ratelimit: failed return of an abandoned request") {
			t.Errorf("got %q, want a line that says so", got)
		}
	})
}
