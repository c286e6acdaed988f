package middleware_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

var two = algorithms.Concurrent(2, 30*time.Second)

// streams serves requests for as long as a test wants.
type streams struct {
	http.Handler
	wg  sync.WaitGroup
	end map[string]chan struct{}
}

func newStreams(m *ratelimit.Middleware) *streams {
	s := &streams{end: make(map[string]chan struct{})}
	s.Handler = m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-s.end[r.Header.Get("Name")] }))
	return s
}

// begin begins a stream, and returns its status; 200 while it runs.
func (s *streams) begin(name string) (status int) {
	status = http.StatusOK
	s.end[name] = make(chan struct{})
	s.wg.Go(func() {
		if code := record(s, with(from("192.0.2.1"), "Name", name)).Code; code != http.StatusOK {
			status = code
		}
	})
	synctest.Wait()
	return status
}

func (s *streams) stop(name string) {
	close(s.end[name])
	synctest.Wait()
}

// TestHeldWhileServed: no more run at a time than may, however long they do, and each makes room when it ends.
func TestHeldWhileServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, p, seen := newMemory(t), byIP("streams", two), new(eventLog)
		s := newStreams(newMiddleware(t, slowToSettle(memory, func(context.Context) error { return nil }), &ratelimit.Options{Observer: seen}, p))
		begin := func(name string, want int) {
			t.Helper()
			if got := s.begin(name); got != want {
				t.Fatalf("%s: got %d, want %d", name, got, want)
			}
		}
		begin("a", 200)
		begin("b", 200)
		begin("c", 429)
		time.Sleep(10 * time.Minute) // renewed all the time
		begin("d", 429)
		s.stop("a")
		begin("e", 200)
		begin("f", 429)
		time.Sleep(45 * time.Second)
		s.stop("b")
		s.stop("e")
		s.wg.Wait()
		synctest.Wait()
		if got := left(t, memory, p, "ip=192.0.2.1"); got != 2 {
			t.Errorf("got %d left in the end, want 2", got)
		}
		settled := len(seen.of(ratelimit.Settled))
		time.Sleep(time.Minute)
		if more := len(seen.of(ratelimit.Settled)) - settled; more != 0 {
			t.Errorf("got %d settlements after the end, want none", more)
		}
	})
}

// TestHoldsEndWithPanics, and nobody waits for their time.
func TestHoldsEndWithPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, p := newMemory(t), byIP("streams", two)
		h := newMiddleware(t, memory, nil, p).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
		for range 5 {
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the handler's panic is gone")
					}
				}()
				record(h, from("192.0.2.1"))
			}()
		}
		if got := left(t, memory, p, "ip=192.0.2.1"); got != 2 {
			t.Errorf("got %d left, want 2", got)
		}
	})
}

// TestRenewedWhileItEnds: what is renewed at the moment of the end is returned all the same, and only then.
func TestRenewedWhileItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, p := newMemory(t), byIP("streams", two)
		var ops []string
		s := newStreams(newMiddleware(t, limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
			if op := checks[0].Op; op == algorithms.Renew || op == algorithms.Return {
				if op == algorithms.Renew {
					time.Sleep(500 * ms)
				}
				ops = append(ops, op.String())
			}
			return memory.Allow(ctx, checks)
		}), nil, p))
		s.begin("a")
		time.Sleep(10*time.Second + 100*ms) // the first renewal is on its way
		s.stop("a")
		s.wg.Wait()
		time.Sleep(time.Second)
		if got := left(t, memory, p, "ip=192.0.2.1"); got != 2 || strings.Join(ops, " ") != "renew return" {
			t.Errorf("got %d left after %q, want 2 after a renewal and the return", got, ops)
		}
	})
}

// TestRenewalsFail: the hold ends by itself, later ones are tried, and the request goes on.
func TestRenewalsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, p, fails := newMemory(t), byIP("streams", algorithms.Concurrent(1, 30*time.Second)), true
		s := newStreams(newMiddleware(t, limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
			if checks[0].Op == algorithms.Renew && fails {
				return errors.New("not now")
			}
			return memory.Allow(ctx, checks)
		}), &ratelimit.Options{Logger: quiet}, p))
		s.begin("a")
		time.Sleep(31 * time.Second)
		if got := left(t, memory, p, "ip=192.0.2.1"); got != 1 {
			t.Errorf("got %d left, want the hold to have ended", got)
		}
		fails = false
		time.Sleep(10 * time.Second)
		if got := s.begin("b"); got != http.StatusTooManyRequests {
			t.Errorf("got %d, want 429: the first still runs, and holds again", got)
		}
		s.stop("a")
		if got := s.begin("c"); got != http.StatusOK {
			t.Errorf("got %d, want 200", got)
		}
		s.stop("c")
		s.wg.Wait()
	})
}

// TestHoldsAreValidated with every limit that a policy may have.
func TestHoldsAreValidated(t *testing.T) {
	short, late := byIP("short", algorithms.Concurrent(2, 999*ms)), lateByIP("late", hourly, 1)
	late.Tier, late.Tiers = noTier, map[string]algorithms.Limit{"streams": two}
	_, err := ratelimit.New(newMemory(t), nil, short, late)
	checkLines(t, err, []string{`"short" & at least a second`, `"late" & cannot be Late`})
}

// TestHeldWithOthers: an outcome and a hold of one request are each settled in their way.
func TestHeldWithOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, o := newMemory(t), newOutcomes(hourly)
		p, candidate := byIP("streams", two), algorithms.Concurrent(5, time.Minute)
		p.Candidate = &candidate
		s := newStreams(newMiddleware(t, memory, nil, o.Policy, p))
		s.begin("a")
		trial := p
		trial.Name, trial.Limit = "streams~candidate", candidate
		for range 2 {
			if a, b := left(t, memory, p, "ip=192.0.2.1"), left(t, memory, trial, "ip=192.0.2.1"); a != 1 || b != 4 {
				t.Errorf("got %d and %d left, want 1 and the candidate's 4", a, b)
			}
			time.Sleep(2 * time.Minute)
		}
		s.stop("a")
		s.wg.Wait()
		for _, p := range []ratelimit.Policy{p, trial, o.Policy} {
			if got := left(t, memory, p, "ip=192.0.2.1"); got != p.Limit.Burst() {
				t.Errorf("%s: got %d left, want all", p.Name, got)
			}
		}
	})
}
