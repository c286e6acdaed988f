// Tests of many requests at once: exact counts, and no state shared between requests.

package tests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// TestConcurrentlyExact: of many requests at once exactly the limit passes, whatever other policies count them.
func TestConcurrentlyExact(t *testing.T) {
	const limit, goroutines, each = 500, 100, 20
	for _, l := range []algorithms.Limit{
		algorithms.TokenBucket(limit, time.Hour), algorithms.FixedWindow(limit, time.Hour),
		algorithms.SlidingWindowLog(limit, time.Hour), algorithms.SlidingWindowCounter(limit, time.Hour),
	} {
		t.Run(l.Algorithm().String(), func(t *testing.T) {
			served, denied := new(counter), new(atomic.Int64)
			m := newMiddleware(t, newStill(t), nil, forAll("all", l), byIP("each", algorithms.TokenBucket(1000, time.Hour)))
			handlers := [2]http.Handler{m.Handler(served), m.Handler(served)} // which share the policies' counts
			var wg sync.WaitGroup
			for g := range goroutines {
				wg.Go(func() {
					for range each {
						if record(handlers[g%2], from(fmt.Sprintf("192.0.2.%d", g))).Code == http.StatusTooManyRequests {
							denied.Add(1)
						}
					}
				})
			}
			wg.Wait()
			if got := served.n.Load(); got != limit || denied.Load() != goroutines*each-limit {
				t.Errorf("got %d served and %d denied of %d, want %d served", got, denied.Load(), goroutines*each, limit)
			}
		})
	}
}

// A random request carries its policies, its client and its cost, and so determines its answer.
type randomRequest struct {
	apply  [6]bool
	tier   bool
	client string
	cost   int64
	fate   string // "", "missing", "malformed", "error", "down"
}

func newRandomRequest(r *rand.Rand, n int) randomRequest {
	q := randomRequest{client: fmt.Sprintf("c%d", n), cost: 1 + r.Int64N(5), tier: r.IntN(2) == 0}
	for i := range q.apply {
		q.apply[i] = r.IntN(2) == 0
	}
	if r.IntN(3) == 0 {
		q.fate = []string{"missing", "malformed", "error", "down"}[r.IntN(4)]
	}
	return q
}

func (q randomRequest) request() *http.Request {
	r := from("192.0.2.1")
	return r.WithContext(context.WithValue(r.Context(), randomRequest{}, q))
}

func randomOf(ctx context.Context) randomRequest { return ctx.Value(randomRequest{}).(randomRequest) }

// want returns the status, the policies and the items that the answer must have.
func (q randomRequest) want() (status int, policies, items string) {
	var p, it []string
	for i, applies := range q.apply {
		burst := q.burst(i)
		if applies {
			p = append(p, fmt.Sprintf(`"p%d";q=%d;w=3600`, i, burst))
			it = append(it, fmt.Sprintf(`"p%d";r=%d;`, i, burst-q.cost))
		}
	}
	switch {
	case len(p) == 0:
		return 200, "", ""
	case q.fate == "missing", q.fate == "malformed":
		return 400, "", ""
	case q.fate == "error":
		return 500, "", ""
	case q.fate == "down":
		return 200, strings.Join(p, ", "), ""
	}
	return 200, strings.Join(p, ", "), strings.Join(it, ", ")
}

// burst grows with i, so that items, the least r first, stand in the order of policies.
func (q randomRequest) burst(i int) int64 {
	if q.tier {
		return int64(1000 + 10*i)
	}
	return int64(100 + 10*i)
}

var randomUser = keyfunc.User(func(ctx context.Context) (keyfunc.Identity, bool) {
	q := randomOf(ctx)
	id := keyfunc.Identity{ID: q.client}
	if q.tier {
		id.Tier = "big"
	}
	return id, true
})

func randomPolicies() []ratelimit.Policy {
	var policies []ratelimit.Policy
	for i := range 6 {
		policies = append(policies, ratelimit.Policy{
			Name: fmt.Sprintf("p%d", i),
			Key: keyfunc.Join(randomUser, keyfunc.Custom("fate", func(r *http.Request) (string, error) {
				q := randomOf(r.Context())
				errs := map[string]error{"missing": keyfunc.ErrMissing, "malformed": keyfunc.ErrMalformed, "error": errOurs}
				return "any", errs[q.fate]
			})),
			Limit: algorithms.TokenBucket(int64(100+10*i), time.Hour),
			Tiers: map[string]algorithms.Limit{"big": algorithms.TokenBucket(int64(1000+10*i), time.Hour)},
			Cost:  func(r *http.Request) int64 { return randomOf(r.Context()).cost },
			Skip:  func(r *http.Request) bool { return !randomOf(r.Context()).apply[i] },
		})
	}
	return policies
}

// TestNothingLeaksBetweenRequests: simultaneous requests get answers about themselves only.
func TestNothingLeaksBetweenRequests(t *testing.T) {
	memory := newStill(t)
	limiter := limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
		if q := randomOf(ctx); q.fate == "down" {
			return errDown
		}
		err := memory.Allow(ctx, checks)
		for i := range checks {
			if want := "usr=" + randomOf(ctx).client + "|fate=any"; checks[i].Key != want || checks[i].Op != algorithms.Take {
				t.Errorf("got check %+v, want a take of %s", checks[i], want)
			}
		}
		return err
	})
	o := &ratelimit.Options{Headers: headers.Draft, Logger: quiet, Observers: []ratelimit.Observer{ratelimit.ObserverFunc(func(ctx context.Context, e ratelimit.Event) {
		for _, p := range e.Verdict.Policies {
			if q := randomOf(ctx); !q.apply[p.Name[1]-'0'] || p.Limit.Burst() != q.burst(int(p.Name[1]-'0')) {
				t.Errorf("got policy %+v told about %+v", p, q)
			}
		}
	})}}
	h := newMiddleware(t, limiter, o, randomPolicies()...).Handler(ok)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(g)))
			for n := range 300 {
				q := newRandomRequest(random, g*1000+n)
				w := record(h, q.request())
				status, policies, items := q.want()
				if w.Code != status || w.Header().Get("Ratelimit-Policy") != policies || !sameItems(w.Header().Get("Ratelimit"), items) {
					t.Errorf("%+v: got status %d and\n%swant %d, %s and %s", q, w.Code, limits(w.Header()), status, policies, items)
				}
			}
		})
	}
	wg.Wait()
}

// sameItems compares items without their t.
func sameItems(got, want string) bool {
	if got == "" || want == "" {
		return got == want
	}
	items, wanted := strings.Split(got, ", "), strings.Split(want, ", ")
	if len(items) != len(wanted) {
		return false
	}
	for i := range items {
		if !strings.HasPrefix(items[i], wanted[i]+"t=") {
			return false
		}
	}
	return true
}
