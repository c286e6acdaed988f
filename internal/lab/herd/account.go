// The workers of one account: they share a key and its limit, and each call has three attempts.

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/client"
)

// A worker sends one call with up to attempts attempts, and reports whether it was served.
type worker func(ctx context.Context, attempts int, send base) bool

// A team is the workers of one account, and the server that counts them.
type team struct {
	name      string
	limit     algorithms.Limit
	hidden    bool // all denials hear the true wait, as without the line
	instances int
	works     worker
}

const (
	calls    = 20 // of each worker
	attempts = 3  // of each call, unless it has no bound
	endless  = 1_000_000
)

var (
	accountLimit = algorithms.TokenBucket(60, time.Minute).WithBurst(10)
	crews        = []int{1, 2, 5, 10, 30, 100}
)

var teams = []team{
	{"token bucket 60/1m burst 10, true waits", accountLimit, true, 1, obeys},
	{"the same, the line", accountLimit, false, 1, obeys},
	{"the line, 4 instances", accountLimit, false, 4, obeys},
	{"the line, go-retryablehttp", accountLimit, false, 1, retryable},
	{"the line, client.Transport", accountLimit, false, 1, ours},
	{"sliding window counter 60/1m, true waits", algorithms.SlidingWindowCounter(60, time.Minute), true, 1, obeys},
	{"the same, the line, 4 instances", algorithms.SlidingWindowCounter(60, time.Minute), false, 4, obeys},
	{"sliding window log 60/1m, true waits", algorithms.SlidingWindowLog(60, time.Minute), true, 1, obeys},
	{"the same, the line, 4 instances", algorithms.SlidingWindowLog(60, time.Minute), false, 4, obeys},
	{"fixed window 60/1m, true waits", algorithms.FixedWindow(60, time.Minute), true, 1, obeys},
	{"the same, jitter, 4 instances", algorithms.FixedWindow(60, time.Minute), false, 4, obeys},
}

// obeys waits as told, to the millisecond, as the SDKs of OpenAI and Anthropic do.
func obeys(ctx context.Context, attempts int, send base) bool {
	for attempt := 1; ; attempt++ {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://herd.example/", nil)
		if err != nil {
			return false
		}
		resp, err := send(r)
		if err != nil {
			return false
		}
		if resp.StatusCode == http.StatusOK {
			return true
		}
		if attempt == attempts {
			return false
		}
		time.Sleep(headers.Read(resp.StatusCode, resp.Header, time.Now()).Wait)
	}
}

// retryable is a client of go-retryablehttp.
func retryable(_ context.Context, attempts int, send base) bool {
	c := retryablehttp.NewClient()
	c.Logger, c.RetryMax, c.HTTPClient = nil, attempts-1, &http.Client{Transport: send}
	resp, err := c.Get("http://herd.example/")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// ours is a client.Transport of a process of its own.
func ours(ctx context.Context, attempts int, send base) bool {
	transport, err := client.NewTransport(send, &client.Options{Attempts: attempts, MaxWait: time.Hour})
	if err != nil {
		return false
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://herd.example/", nil)
	if err != nil {
		return false
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// A harvest sums up the calls of a team.
type harvest struct{ sent, served, failed int }

// work lets n workers send their calls. It must run in a bubble of synctest.
func (c team) work(n, attempts int, seed uint64) (h harvest) {
	servers := c.server()
	var all sync.WaitGroup
	var mu sync.Mutex // guards h and v.random of the server
	for i := range n {
		all.Go(func() {
			v := newVisitor(i, calls, seed)
			pause := rand.New(rand.NewPCG(seed, uint64(n+i)))
			time.Sleep(v.draw(time.Second))
			for range calls {
				time.Sleep(20*time.Millisecond + time.Duration(pause.IntN(180))*time.Millisecond)
				served := c.works(context.Background(), attempts, func(*http.Request) (*http.Response, error) {
					w := servers.ask(v)
					mu.Lock()
					h.sent++
					mu.Unlock()
					return w.Result(), nil
				})
				mu.Lock()
				if served {
					h.served++
				} else {
					h.failed++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return h
}

// server returns a server that counts the account.
func (c team) server() (all server) {
	limiter := counted{algorithms.NewMemory(nil), c.instances}
	o := &ratelimit.Options{Headers: headers.Draft, Logger: slog.New(slog.DiscardHandler)}
	for range c.instances {
		m := ratelimit.Must(ratelimit.New(limiter, o, ratelimit.Policy{Name: "account", Key: oneClient, Limit: c.limit, Hidden: c.hidden}))
		all = append(all, m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	}
	return all
}

// of returns what n workers of a team see.
func (c team) of(t *testing.T, n, attempts int) (h harvest) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { h = c.work(n, attempts, shown) })
	return h
}

// accounts returns the tables of the workers of one account.
func accounts(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("\n## One account: each worker has 20 calls with three attempts\n\nThe calls that fail, by the number of workers. The last column has no bound on attempts.\n\n| limit, waits, client |")
	for _, n := range crews {
		fmt.Fprintf(&b, " %d |", n)
	}
	b.WriteString(" requests per success, 30 workers |\n| --- |" + strings.Repeat(" ---: |", len(crews)+1) + "\n")
	for _, c := range teams {
		fmt.Fprintf(&b, "| %s |", c.name)
		for _, n := range crews {
			h := c.of(t, n, attempts)
			fmt.Fprintf(&b, " %.1f %% |", 100*float64(h.failed)/float64(h.failed+h.served))
		}
		h := c.of(t, 30, endless)
		fmt.Fprintf(&b, " %.2f |\n", float64(h.sent)/float64(max(h.served, 1)))
	}
	b.WriteString("\nA hundred workers want more than 60 per minute admits in three waits. In the rows of go-retryablehttp and client.Transport, chance has no seed.\n")
	b.WriteString("\n## Beside a poller: ten minutes of five workers who wait as told, and a script that does not\n\n| the script asks | waits | units of the five | units of the script |\n| --- | --- | ---: | ---: |\n")
	for _, every := range []time.Duration{time.Second, 100 * time.Millisecond} {
		for _, hidden := range []bool{true, false} {
			polite, polled := besidePoller(t, every, hidden)
			fmt.Fprintf(&b, "| every %v | %s | %d | %d |\n", every, map[bool]string{true: "true", false: "the line"}[hidden], polite, polled)
		}
	}
	return b.String()
}

// besidePoller returns how many units five polite workers get beside a script that ignores its waits, and how many it gets.
func besidePoller(t *testing.T, every time.Duration, hidden bool) (polite, polled int) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		servers := team{limit: accountLimit, hidden: hidden, instances: 1}.server()
		end := time.Now().Add(10 * time.Minute)
		var all sync.WaitGroup
		var mu sync.Mutex // guards the results
		for i := range 5 {
			all.Go(func() {
				v := newVisitor(i, 0, shown)
				time.Sleep(time.Duration(137*i) * time.Millisecond)
				for time.Now().Before(end) {
					time.Sleep(50 * time.Millisecond)
					w := servers.ask(v)
					if w.Code != http.StatusOK {
						time.Sleep(hintOf(w))
						continue
					}
					mu.Lock()
					polite++
					mu.Unlock()
				}
			})
		}
		all.Go(func() {
			for v := newVisitor(9, 0, shown); time.Now().Before(end); time.Sleep(every) {
				if servers.ask(v).Code == http.StatusOK {
					mu.Lock()
					polled++
					mu.Unlock()
				}
			}
		})
		all.Wait()
	})
	return polite, polled
}
