// Tests of the workers of one account: they share a limit, and all of them wait as told.

package tests

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// An account is workers who send calls, one after the other.
type account struct {
	limit     algorithms.Limit
	workers   int
	calls     int // of each worker
	attempts  int // of each call; 0: without end
	instances int
	sticky    bool // a worker's requests reach one instance
	steady    bool // a client has filled the limit, one request per second
	hidden    bool // all denials hear the true wait
	name      string
	limiters  []algorithms.Limiter // of the instances; nil: they share a Memory
}

// A harvest sums up what the workers saw.
type harvest struct {
	sent, served, failed int
	took                 time.Duration
	waits                []int // of one worker, in order
}

func (h *harvest) failing() float64    { return 100 * float64(h.failed) / float64(h.failed+h.served) }
func (h *harvest) perSuccess() float64 { return float64(h.sent) / float64(h.served) }

// work lets the workers send all their calls. It must run in a bubble of synctest.
func (a account) work(t *testing.T, seed uint64) (h harvest) {
	limiters := a.limiters
	if limiters == nil {
		limiters = slices.Repeat([]algorithms.Limiter{instances{newMemory(t), max(a.instances, 1)}}, max(a.instances, 1))
	}
	var servers []http.Handler
	for _, l := range limiters {
		servers = append(servers, newMiddleware(t, l, nil, ratelimit.Policy{Name: "account", Key: planKey, Limit: a.limit, Hidden: a.hidden}).Handler(ok))
	}
	for range 60 {
		if a.steady {
			record(servers[0], onPlan(from(nth(0)), "acme"+a.name))
			time.Sleep(time.Second)
		}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex // guards h
	begin := time.Now()
	for i := range a.workers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
			for done, tries := 0, 0; done < a.calls; {
				time.Sleep(time.Duration(20+random.IntN(180)) * time.Millisecond)
				server := i
				if !a.sticky {
					server = random.IntN(len(servers))
				}
				w := record(servers[server%len(servers)], onPlan(from(nth(i)), "acme"+a.name))
				mu.Lock()
				h.sent++
				tries++
				switch wait := 0; {
				case w.Code == http.StatusOK:
					h.served++
					h.took = time.Since(begin)
					done, tries = done+1, 0
				case tries == a.attempts:
					h.failed++
					done, tries = done+1, 0
				default:
					wait = retryAfter(t, w.Header())
					if i == 0 {
						h.waits = append(h.waits, wait)
					}
					mu.Unlock()
					time.Sleep(time.Duration(wait) * time.Second)
					mu.Lock()
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return h
}

// mean returns the means of three seeds.
func (a account) mean(t *testing.T) (failing, perSuccess float64) {
	t.Helper()
	const seeds = 3
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			h := a.work(t, seed)
			failing, perSuccess = failing+h.failing()/seeds, perSuccess+h.perSuccess()/seeds
		})
	}
	return failing, perSuccess
}

// perMinute is the limit of the accounts.
var perMinute = algorithms.TokenBucket(60, time.Minute).WithBurst(10)

// TestWorkersOfAnAccount: workers who wait as told lose few of their calls, although each call has three attempts. A
// hundred workers want more than the limit admits in three waits of 30 s. Instances that share a limiter share the line.
func TestWorkersOfAnAccount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		instances, workers int
		most               float64 // per cent of the calls that fail
	}{
		{1, 1, 0}, {1, 2, 1}, {1, 5, 1}, {1, 10, 1}, {1, 30, 1}, {1, 100, 45},
		{4, 1, 0}, {4, 2, 1}, {4, 5, 1}, {4, 10, 1}, {4, 30, 1}, {4, 100, 45},
	} {
		a := account{limit: perMinute, workers: tt.workers, calls: 20, attempts: 3, instances: tt.instances}
		failing, perSuccess := a.mean(t)
		a.hidden = true
		honest, _ := a.mean(t)
		t.Logf("%d instances, %3d workers: %5.2f %% of the calls fail, %5.2f %% with the honest wait, %.2f requests per success",
			tt.instances, tt.workers, failing, honest, perSuccess)
		if failing > tt.most || tt.workers > 1 && failing >= honest {
			t.Errorf("%d instances, %d workers: got %.2f %%, want at most %v, and less than %.2f", tt.instances, tt.workers, failing, tt.most, honest)
		}
	}
}

// TestRequestsPerSuccess: workers who try until they are served send few requests.
func TestRequestsPerSuccess(t *testing.T) {
	t.Parallel()
	for _, limit := range []algorithms.Limit{perMinute, algorithms.SlidingWindowCounter(60, time.Minute)} {
		for _, n := range []int{1, 4} {
			for _, sticky := range []bool{false, true} {
				_, got := account{limit: limit, workers: 30, calls: 10, instances: n, sticky: sticky}.mean(t)
				t.Logf("%v, %d instances: %.2f requests per success", limit, n, got)
				if got > 2.2 {
					t.Errorf("%v, %d instances: got %.2f requests per success, want at most 2.2", limit, n, got)
				}
			}
		}
	}
}

// TestLoneWorkerNoticesNothing: it sends as many requests, and hears the same waits, as if all denials were honest.
func TestLoneWorkerNoticesNothing(t *testing.T) {
	t.Parallel()
	for _, limit := range []algorithms.Limit{
		perMinute, algorithms.TokenBucket(10, time.Second), algorithms.SlidingWindowCounter(20, time.Minute), algorithms.SlidingWindowLog(20, time.Minute),
		algorithms.FixedWindow(20, time.Minute),
	} {
		for _, n := range []int{1, 4} {
			a := account{limit: limit, workers: 1, calls: 60, instances: n}
			var got, want harvest
			synctest.Test(t, func(t *testing.T) { got = a.work(t, 1) })
			a.hidden = true
			synctest.Test(t, func(t *testing.T) { want = a.work(t, 1) })
			if got.sent != want.sent || !slices.Equal(got.waits, want.waits) || got.took != want.took {
				t.Errorf("%v, %d instances: got %d requests with the waits %v, want %d with %v", limit, n, got.sent, got.waits, want.sent, want.waits)
			}
		}
	}
}

// TestSmoothLog: workers of a log that a steady client has filled meet no herd either. Its units come back one by one.
func TestSmoothLog(t *testing.T) {
	t.Parallel()
	a := account{limit: algorithms.SlidingWindowLog(60, time.Minute), workers: 10, calls: 10, attempts: 3, steady: true}
	failing, perSuccess := a.mean(t)
	a.hidden = true
	honest, _ := a.mean(t)
	t.Logf("%.2f %% of the calls fail, %.2f %% with the honest wait, %.2f requests per success", failing, honest, perSuccess)
	if failing > honest/5 {
		t.Errorf("got %.2f %%, want at most a fifth of %.2f", failing, honest)
	}
}

// TestBurstLog: if a burst has filled a log, its units come back as a burst, and workers do not queue for them.
func TestBurstLog(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 4} {
		a := account{limit: algorithms.SlidingWindowLog(60, time.Minute), workers: 30, calls: 20, attempts: 3, instances: n}
		failing, perSuccess := a.mean(t)
		a.hidden = true
		honest, _ := a.mean(t)
		t.Logf("%d instances: %.2f %% of the calls fail, %.2f %% with the honest wait, %.2f requests per success", n, failing, honest, perSuccess)
		if failing > honest+1 {
			t.Errorf("%d instances: got %.2f %%, want at most 1 more than %.2f", n, failing, honest)
		}
	}
}

// TestPollerBesideWorkers: a script that ignores its waits moves its account's line. Five workers of the account who wait
// as told still get some of the 600 units.
func TestPollerBesideWorkers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		every time.Duration
		least int
	}{{time.Second, 6}, {100 * time.Millisecond, 4}} {
		synctest.Test(t, func(t *testing.T) {
			h := newMiddleware(t, newMemory(t), nil, ratelimit.Policy{Name: "account", Key: planKey, Limit: perMinute}).Handler(ok)
			send := func(i int) *httptest.ResponseRecorder { return record(h, onPlan(from(nth(i)), "acme")) }
			var wg sync.WaitGroup
			var polite, polled atomic.Int64
			end := time.Now().Add(10 * time.Minute)
			for i := range 5 {
				wg.Go(func() {
					time.Sleep(time.Duration(137*i) * time.Millisecond)
					for time.Now().Before(end) {
						time.Sleep(50 * time.Millisecond)
						if w := send(i); w.Code == http.StatusOK {
							polite.Add(1)
						} else {
							time.Sleep(time.Duration(retryAfter(t, w.Header())) * time.Second)
						}
					}
				})
			}
			wg.Go(func() {
				for time.Now().Before(end) {
					if send(9).Code == http.StatusOK {
						polled.Add(1)
					}
					time.Sleep(tt.every)
				}
			})
			wg.Wait()
			t.Logf("a script that asks every %v: it gets %d units, the five workers %d", tt.every, polled.Load(), polite.Load())
			if int(polite.Load()) < tt.least {
				t.Errorf("asking every %v: the workers got %d units, want at least %d", tt.every, polite.Load(), tt.least)
			}
		})
	}
}
