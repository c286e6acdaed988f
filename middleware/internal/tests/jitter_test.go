// Tests of the jitter in Retry-After.

package tests

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/internal/comeback"
)

// retryAfter returns the field in seconds, -1 if there is none, and wants at most one line of it.
func retryAfter(t *testing.T, h http.Header) int {
	t.Helper()
	switch lines := h.Values("Retry-After"); len(lines) {
	case 0:
		return -1
	case 1:
		seconds, err := strconv.Atoi(lines[0])
		if err != nil || seconds < 1 {
			t.Errorf("got Retry-After %q, want an integer of 1 or more", lines[0])
		}
		return seconds
	default:
		t.Errorf("got %d lines of Retry-After, want 1", len(lines))
		return -1
	}
}

// TestFixedWindowJitter: clients of one window come back one after the other, never early, and each sees one instant.
func TestFixedWindowJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients = 50
		p := byIP("p", algorithms.FixedWindow(1, time.Minute))
		a := newMiddleware(t, newMemory(t), nil, p).Handler(ok)
		b := newMiddleware(t, newMemory(t), nil, p).Handler(ok)
		client := func(i int) *http.Request { return from(fmt.Sprintf("192.0.2.%d", i)) }
		start := time.Now()
		for i := range clients {
			record(a, client(i))
			record(b, client(i))
		}
		said, distinct := make([]int, clients), map[int]bool{}
		for second := range 60 {
			for i := range clients {
				w, other := record(a, client(i)), record(b, client(i))
				got := retryAfter(t, w.Header())
				if w.Code != http.StatusTooManyRequests || got != retryAfter(t, other.Header()) {
					t.Fatalf("client %d at %d s: got status %d and %d s, the other instance said %d s",
						i, second, w.Code, got, retryAfter(t, other.Header()))
				}
				if said[i] == 0 {
					said[i] = got
				}
				if got < 60-second || got > 66-second || got != said[i]-second {
					t.Fatalf("client %d at %d s: got %d s, want %d s, at least until the turn, and at most 6 s more",
						i, second, got, said[i]-second)
				}
				if want := fmt.Sprintf(`"p";r=0;t=%d`, got); w.Header().Get("Ratelimit") != want ||
					w.Header().Get("Ratelimit-Reset") != strconv.Itoa(got) {
					t.Fatalf("got\n%swant %s", limits(w.Header()), want)
				}
				distinct[said[i]] = true
			}
			time.Sleep(time.Second)
		}
		if len(distinct) < 4 {
			t.Errorf("got %v, want waits spread over 6 s", distinct)
		}
		spread := comeback.Jitter(6*time.Second, "p", "ip=192.0.2.0", start.Add(time.Minute).Unix()/60)
		if got, want := said[0], int((time.Minute+spread+time.Second-1)/time.Second); got != want {
			t.Errorf("got %d s, want %d s", got, want)
		}
		if got := record(a, client(0)).Code; got != http.StatusOK {
			t.Errorf("got status %d after the turn, want 200", got)
		}
	})
}

// TestFixedWindowJitterAtAnyPhase: the instant stays the same until the last µs before the turn.
func TestFixedWindowJitterAtAnyPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMiddleware(t, newMemory(t), nil, byIP("p", algorithms.FixedWindow(1, 10*time.Second)))
		h := m.Handler(ok)
		start := time.Now()
		record(h, from("192.0.2.1"))
		instant := 10*time.Second + comeback.Jitter(time.Second, "p", "ip=192.0.2.1", start.Add(10*time.Second).Unix()/10)
		for _, at := range []time.Duration{0, ms, 4999 * ms, 5 * time.Second, 5001 * ms, 9 * time.Second, 10*time.Second - time.Microsecond} {
			time.Sleep(time.Until(start.Add(at)))
			got := time.Duration(retryAfter(t, record(h, from("192.0.2.1")).Header())) * time.Second
			if late := at + got - instant; late < 0 || late >= time.Second {
				t.Errorf("at %v: got %v, which is %v after %v", at, got, late, instant)
			}
		}
	})
}

// TestFixedWindowJitterOfSkewedClocks: the limiter's clock may differ a little from the process's clock.
func TestFixedWindowJitterOfSkewedClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(30 * time.Second)
		for i := range 20 {
			said := map[int]bool{}
			for _, skew := range []time.Duration{-2 * ms, 0, 2 * ms} {
				memory := newMemoryWith(t, algorithms.MemoryOptions{Now: func() time.Time { return time.Now().Add(skew) }})
				h := newMiddleware(t, memory, nil, byIP("p", algorithms.FixedWindow(1, 10*time.Minute))).Handler(ok)
				client := fmt.Sprintf("192.0.2.%d", i)
				record(h, from(client))
				said[retryAfter(t, record(h, from(client)).Header())] = true
			}
			if len(said) > 2 || len(said) == 2 && !said[slices.Max(slices.Collect(maps.Keys(said)))-1] {
				t.Errorf("got %v of clocks that differ by 2 ms, want at most a second between them", said)
			}
		}
	})
}

// TestPrivateJitter: clients that wait for shared capacity are spread, whatever the algorithm, and never early.
func TestPrivateJitter(t *testing.T) {
	for _, l := range []algorithms.Limit{
		algorithms.TokenBucket(1, 5*time.Minute), algorithms.SlidingWindowLog(1, 5*time.Minute),
		algorithms.FixedWindow(1, 5*time.Minute), algorithms.SlidingWindowCounter(1, 5*time.Minute),
	} {
		for name, policies := range map[string][]ratelimit.Policy{
			"alone":           {forAll("all", l)},
			"by each client":  {forAll("all", l), byIP("each", algorithms.TokenBucket(1000, time.Second))},
			"also by a third": {forAll("all", l), {Name: "k", Key: keyfunc.IP(nil), Limit: hourly, Skip: func(*http.Request) bool { return true }}},
		} {
			t.Run(fmt.Sprintf("%v %s", l, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := newMiddleware(t, newMemory(t), nil, policies...)
					h, distinct := m.Handler(ok), map[int]bool{}
					record(h, from("192.0.2.250"))
					wait := check(t, m, from("192.0.2.251")).RetryAfter
					for i := range 50 {
						got := retryAfter(t, record(h, from(fmt.Sprintf("192.0.2.%d", i))).Header())
						if again := retryAfter(t, record(h, from(fmt.Sprintf("192.0.2.%d", i))).Header()); again != got {
							t.Errorf("got %d s, then %d s at the same instant", got, again)
						}
						if early := wait - time.Duration(got)*time.Second; early > 0 || early < -31*time.Second {
							t.Errorf("got %d s, want %v and up to 30 s more", got, wait)
						}
						distinct[got] = true
					}
					if len(distinct) < 15 {
						t.Errorf("got %d different waits, want them spread over 30 s", len(distinct))
					}
				})
			})
		}
	}
}

// TestExactWaitsOfVerdicts: a verdict has no jitter.
func TestExactWaitsOfVerdicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMiddleware(t, newMemory(t), nil, byIP("p", algorithms.FixedWindow(1, time.Minute)))
		check(t, m, from("192.0.2.1"))
		time.Sleep(17301 * ms)
		if got, want := check(t, m, from("192.0.2.1")).RetryAfter, time.Minute-17301*ms; got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}
