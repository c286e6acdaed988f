// The process that serves in tests of several processes, and the books it keeps.

package tests

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/middleware"
)

// This file is a process that serves: this test binary once more, behind real HTTP. It counts events in Redis, where
// the counts outlive it. service_test.go has the tests' side.

// A job is the task of a process.
type job struct {
	Redis  string // its address
	Name   string // of the process, and so of its book
	Policy string
	Limit  string
	Hangs  string // if not empty, the process serves nothing and sends requests to this URL, which does not answer
}

// TestProcess is the process of other tests.
func TestProcess(t *testing.T) {
	redistest.RunJob(t, func(p *redistest.Parent, j job) {
		if j.Hangs != "" {
			j.hang(p)
			return
		}
		j.serve(t, p)
	})
}

// serve sends the parent its address, and serves until the parent ends it.
func (j *job) serve(t *testing.T, p *redistest.Parent) {
	limit, err := algorithms.ParseLimit(j.Limit)
	if err != nil {
		t.Fatal(err)
	}
	client := patientClient(j.Redis)
	defer client.Close()
	limiter, err := shared.New(client, &shared.Options{Deadline: time.Minute, Logger: quiet}) // a slow machine is no outage
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, redis: client, book: j.Name, limit: limit, release: make(chan struct{})}
	policy, handler := s.logins(j.Policy)
	if j.Policy == modelTokens {
		policy, handler = s.tokens(j.Policy)
	}
	m := newMiddleware(t, patient{limiter}, &ratelimit.Options{Observers: []ratelimit.Observer{s}, Logger: quiet}, policy)
	mux := http.NewServeMux()
	mux.Handle("POST /{how}", m.Handler(handler))
	mux.HandleFunc("POST /release", func(http.ResponseWriter, *http.Request) { close(s.release) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: mux, ErrorLog: log.New(io.Discard, "", 0)} // it would log the panics of handlers
	go func() { _ = server.Serve(listener) }()                                 // until it is shut down
	p.Say("http://" + listener.Addr().String())
	p.Wait()
	ctx := context.Background()
	for _, end := range []func(context.Context) error{m.Close, server.Shutdown, m.Close} {
		if err := end(ctx); err != nil {
			t.Error(err)
		}
	}
	if err := limiter.Close(); err != nil {
		t.Error(err)
	}
}

// asking is how many requests a process that only asks has in flight.
const asking = 5

// hang sends requests, and waits for their answers until the parent kills it or is gone.
func (j *job) hang(p *redistest.Parent) {
	for range asking {
		go func() { _, _ = http.Post(j.Hangs, "", nil) }() // there are none
	}
	p.Wait()
}

// patientClient returns a client for a slow machine. It does nothing twice.
func patientClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, DialTimeout: time.Minute, ReadTimeout: time.Minute, WriteTimeout: time.Minute, PoolTimeout: time.Minute,
	})
}

// A site is the service of a process.
type site struct {
	*testing.T
	redis   *redis.Client
	book    string // where it writes
	limit   algorithms.Limit
	release chan struct{} // closed when held requests may go on
}

// Entries of a book, besides the statuses of outcomes.
const (
	begun    = "begun "   // requests; then how they are to end
	ended    = "ended"    // requests
	due      = "due"      // settlements
	settled  = "settled"  // settlements
	units    = "units"    // that requests cost, by what they told
	degraded = "degraded" // decisions without Redis
	excess   = "excess"   // requests that began beyond the limit
)

func (s *site) write(what string, n int64) {
	if err := s.redis.HIncrBy(context.Background(), s.book, what, n).Err(); err != nil {
		s.Error(err)
	}
}

// Observe implements [ratelimit.Observer].
func (s *site) Observe(_ context.Context, e ratelimit.Event) {
	switch {
	case e.Kind == ratelimit.Decided && e.Verdict.Degraded:
		s.write(degraded, 1)
	case e.Kind == ratelimit.Settled && e.Err == nil:
		s.write(settled, 1)
	case e.Kind == ratelimit.Settled:
		s.Errorf("a settlement was not made: %+v", e)
	}
}

// begin writes down an admitted request, and adds its reservation to a sum of all processes. Redis was charged before,
// and gets the units back after end; so the sum never exceeds the limit.
func (s *site) begin(r *http.Request, n int64) {
	s.write(begun+r.PathValue("how"), 1)
	if s.sum(n) > s.limit.Burst() {
		s.write(excess, 1)
	}
}

// end writes down a request that is about to end, and the units that it returns; below 0 if it is charged more.
func (s *site) end(back int64) {
	if back != 0 {
		s.write(due, 1)
		s.sum(-max(0, back))
	}
	s.write(ended, 1)
}

func (s *site) sum(n int64) int64 {
	sum, err := s.redis.IncrBy(context.Background(), "sum", n).Result()
	if err != nil {
		s.Error(err)
	}
	return sum
}

// hold waits for release if the client asks for it.
func (s *site) hold(r *http.Request, here string) {
	if r.URL.Query().Has(here) {
		<-s.release
	}
}

// limiting makes a limit of a burst. Spent units carry over to a larger burst.
type limiting func(burst int64) algorithms.Limit

// No unit refills while a test runs. Redis counts whole units: after a return to a bucket, it rounds up.
func hourlyLog(n int64) algorithms.Limit    { return algorithms.SlidingWindowLog(n, time.Hour) }
func yearlyWindow(n int64) algorithms.Limit { return algorithms.FixedWindow(n, 365*24*time.Hour) }
func yearlyBucket(n int64) algorithms.Limit {
	return algorithms.TokenBucket(60, 365*24*time.Hour).WithBurst(n)
}

// rounding is how many units too many Redis may count under such a limit.
func rounding(l algorithms.Limit) int64 {
	if l.Algorithm().Continuous() {
		return 1
	}
	return 0
}
