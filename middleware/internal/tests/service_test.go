// A service of several processes on one Redis, with clients that compare answers and books.

package tests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
)

// This file starts processes that serve, sends them requests, and compares the answers with what the processes count.

const (
	processes   = 4              // that serve
	clientsEach = 50             // of each of them, so 200 in all
	everyone    = "ip=127.0.0.1" // is where all clients are
)

// A service is some processes on one Redis, with their clients.
type service struct {
	*testing.T
	redis  *redis.Client
	limit  limiting
	job    job
	all    []*process
	client *http.Client
	leaver *http.Client // of who hangs up, with a connection for each request

	mu   sync.Mutex
	seen map[answer]int64
}

// An answer is the status of a request, 0 if there was none.
type answer struct {
	how    string
	status int
}

// A process serves, or sends requests.
type process struct {
	*redistest.Child
	name, url string
}

// startService starts the processes.
func startService(t *testing.T, policy string, burst int64, limit limiting) *service {
	if testing.Short() {
		t.Skip("left out by -short: takes seconds")
	}
	addr := redistest.Start(t).Addr()
	transport := &http.Transport{MaxIdleConnsPerHost: 2 * clientsEach}
	s := &service{
		T: t, redis: patientClient(addr), limit: limit, client: &http.Client{Transport: transport},
		leaver: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, seen: make(map[answer]int64),
		job: job{Redis: addr, Policy: policy, Limit: limit(burst).String()},
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = s.redis.Close() // nothing is lost with it
	})
	for i := range processes {
		j := s.job
		j.Name = fmt.Sprint("process ", i)
		s.all = append(s.all, s.start(j))
	}
	for _, p := range s.all {
		if err := p.Next(&p.url); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *service) start(j job) *process {
	s.Helper()
	return &process{Child: redistest.Rerun(s, "TestProcess", j), name: j.Name}
}

// stop shuts processes down, which makes the remaining settlements.
func (s *service) stop(some ...*process) {
	s.Helper()
	s.client.CloseIdleConnections() // servers wait for connections that were never used
	for _, p := range some {
		p.CloseInput()
	}
	for _, p := range some {
		if err := p.Close(); err != nil {
			s.Errorf("%s: %v", p.name, err)
		}
	}
}

// post sends a request, once, and returns the status of the answer, or 0 and the error.
//
// A request that its client cancels gets a connection of its own. The transport offers a connection to the next request
// before it has handed the answer of the last one over, so the next request's cancellation can cost the last one its
// answer.
func (s *service) post(ctx context.Context, p *process, path string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/"+path, nil)
	if err != nil {
		return 0, err
	}
	status, client := 0, s.client
	if ctx.Done() != nil {
		client = s.leaver
	}
	resp, err := client.Do(r)
	if err == nil {
		status = resp.StatusCode
		_, _ = io.Copy(io.Discard, resp.Body) // it breaks off where a handler panics
		_ = resp.Body.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	how, _, _ := strings.Cut(path, "?")
	s.seen[answer{how, status}]++
	return status, err
}

// ask is post that returns only the status.
func (s *service) ask(p *process, path string) int {
	status, _ := s.post(context.Background(), p, path) // the status says it
	return status
}

// answers returns how many answers of a status there were so far, 0 for all of them.
func (s *service) answers(status int) (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a, count := range s.seen {
		if status == 0 || a.status == status {
			n += count
		}
	}
	return n
}

// releases lets held requests go on.
func (s *service) releases(some ...*process) {
	s.Helper()
	for _, p := range some {
		if got := s.ask(p, "release"); got != http.StatusOK {
			s.Fatalf("release: got %d", got)
		}
	}
}

// books returns the sum of the processes' books.
func (s *service) books(some ...*process) map[string]int64 {
	s.Helper()
	sum := make(map[string]int64)
	for _, p := range some {
		book, err := s.redis.HGetAll(s.Context(), p.name).Result()
		if err != nil {
			s.Fatal(err)
		}
		for what, text := range book {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				s.Fatal(err)
			}
			sum[what] += n
		}
	}
	return sum
}

// begunOf returns how many requests were admitted.
func begunOf(book map[string]int64) (n int64) {
	for what, count := range book {
		if strings.HasPrefix(what, begun) {
			n += count
		}
	}
	return n
}

// used returns the units in Redis at a later time, debt included.
func (s *service) used(after time.Duration) int64 {
	s.Helper()
	c := algorithms.Check{Policy: s.job.Policy, Key: everyone, Limit: s.limit(10_000)}
	s.do(&c, after)
	return c.Limit.Burst() - c.Decision.Remaining
}

// do runs a check in Redis, at an instant after now.
func (s *service) do(c *algorithms.Check, after time.Duration) {
	s.Helper()
	o := shared.Options{Deadline: time.Minute, Views: shared.ViewsOff, Logger: quiet}
	if after > 0 {
		o.Now = func() time.Time { return time.Now().Add(after) }
	}
	limiter, err := shared.New(s.redis, &o)
	if err != nil {
		s.Fatal(err)
	}
	checks := []algorithms.Check{*c}
	if err := errors.Join(limiter.Allow(s.Context(), checks), limiter.Close()); err != nil {
		s.Fatal(err)
	}
	c.Decision = checks[0].Decision
}

// until waits until a condition holds. A failure shows the books.
func (s *service) until(condition string, holds func() bool) {
	s.Helper()
	defer func() {
		if s.Failed() {
			s.Logf("%d are used, and the books say %v", s.used(0), s.books(s.all...))
		}
	}()
	redistest.Until(s, condition, holds)
}

// await waits until all requests of processes have ended, and are settled.
func (s *service) await(some ...*process) {
	s.Helper()
	s.until("all is settled", func() bool {
		book := s.books(some...)
		return book[ended] == begunOf(book) && book[settled] == book[due]
	})
}

// fill sends requests until every process denies, so the limit is used up.
func (s *service) fill(path string, some ...*process) {
	s.Helper()
	for _, p := range some {
		for n := 0; s.ask(p, path) != http.StatusTooManyRequests; n++ {
			if n > 10_000 {
				s.Fatal("there is no limit")
			}
		}
	}
}

// checkBooks wants no decision without Redis, and no request beyond the limit.
func (s *service) checkBooks() {
	s.Helper()
	book := s.books(s.all...)
	if book[degraded] != 0 || book[excess] != 0 {
		s.Errorf("got %v, want no request that began beyond the limit, or without Redis", book)
	}
}
