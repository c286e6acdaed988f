package middleware_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// Here real processes serve: each is this test binary once more, behind real HTTP, and can be killed. What they do they
// write down in Redis, where it outlives them.

const (
	jobEnv      = "PENSTOCK_TEST_JOB" // holds a job, for a process of this test binary
	serves      = "serves "           // then its address
	processes   = 4                   // that serve
	clientsEach = 50                  // of each of them, so 200 in all
	everyone    = "ip=127.0.0.1"      // is where all clients are
)

// A job is what a process is for.
type job struct {
	Redis  string // its address
	Name   string // of the process, and so of its book
	Policy string
	Limit  string
	Hangs  string // if not empty, the process serves nothing, but asks here for what does not answer
}

// TestProcess is no test, but what the processes of the tests run.
func TestProcess(t *testing.T) {
	text := os.Getenv(jobEnv)
	if text == "" {
		t.Skip("a process of other tests")
	}
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		t.Fatal(err)
	}
	if j.Hangs != "" {
		j.hang()
		return
	}
	limit, err := algorithms.ParseLimit(j.Limit)
	if err != nil {
		t.Fatal(err)
	}
	client := patientClient(j.Redis)
	defer client.Close()
	stack, err := algorithms.NewShared(client, &algorithms.Options{
		Redis:    algorithms.RedisOptions{Timeout: time.Minute}, // a slow machine is no outage
		Fallback: algorithms.FallbackOptions{Deadline: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, redis: client, book: j.Name, limit: limit, release: make(chan struct{})}
	policy, handler := s.logins(j.Policy)
	if j.Policy == modelTokens {
		policy, handler = s.tokens(j.Policy)
	}
	m := newMiddleware(t, patient{stack}, &ratelimit.Options{Observer: s, Logger: quiet}, policy)
	mux := http.NewServeMux()
	mux.Handle("POST /{how}", m.Handler(handler))
	mux.HandleFunc("POST /release", func(http.ResponseWriter, *http.Request) { close(s.release) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: mux, ErrorLog: log.New(io.Discard, "", 0)} // which is told of panics
	go func() { _ = server.Serve(listener) }()                                 // until it is shut down
	fmt.Println(serves + "http://" + listener.Addr().String())
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test closes it, or is gone
	ctx := context.Background()
	for _, end := range []func(context.Context) error{m.Close, server.Shutdown, m.Close} {
		if err := end(ctx); err != nil {
			t.Error(err)
		}
	}
	if err := stack.Close(); err != nil {
		t.Error(err)
	}
}

// asking is how many requests a process that only asks has in flight.
const asking = 5

// hang asks, and waits for answers until it is killed, or the test is gone.
func (j *job) hang() {
	for range asking {
		go func() { _, _ = http.Post(j.Hangs, "", nil) }() // there are none
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// patientClient returns a client for a slow machine. It does nothing twice.
func patientClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, DialTimeout: time.Minute, ReadTimeout: time.Minute, WriteTimeout: time.Minute, PoolTimeout: time.Minute,
	})
}

// A site is what a process serves.
type site struct {
	*testing.T
	redis   *redis.Client
	book    string // where it writes
	limit   algorithms.Limit
	release chan struct{} // closed when held requests may go on
}

// What stands in a book, besides the statuses of outcomes.
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
	case e.Kind == ratelimit.Settled, e.Kind == ratelimit.SettleDropped:
		s.Errorf("a settlement was not made: %+v", e)
	}
}

// begin writes down a request that was admitted, with what it has reserved, which is added to a sum of all processes.
// That has been taken from Redis before, and is given back after end; so the sum is never more than the limit.
func (s *site) begin(r *http.Request, n int64) {
	s.write(begun+r.PathValue("how"), 1)
	if s.sum(n) > s.limit.Burst() {
		s.write(excess, 1)
	}
}

// end writes down a request that is about to end, and what it is to be given back; less than 0 if it is to be charged
// more.
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

// hold waits for release, if the client wants it here.
func (s *site) hold(r *http.Request, here string) {
	if r.URL.Query().Has(here) {
		<-s.release
	}
}

// limiting makes a limit of a burst; what is spent of one is spent of a larger one.
type limiting func(burst int64) algorithms.Limit

// Nothing comes back by itself while a test runs. Redis counts whole units: of a bucket that has been given back some,
// it rounds up what has drained meanwhile.
func hourlyLog(n int64) algorithms.Limit    { return algorithms.SlidingWindowLog(n, time.Hour) }
func yearlyWindow(n int64) algorithms.Limit { return algorithms.FixedWindow(n, 365*24*time.Hour) }
func yearlyBucket(n int64) algorithms.Limit {
	return algorithms.TokenBucket(60, 365*24*time.Hour).WithBurst(n)
}

// rounding is how many units more than were spent Redis may count, under such a limit.
func rounding(l algorithms.Limit) int64 {
	if l.Algorithm().Continuous() {
		return 1
	}
	return 0
}

// A service is some processes on one Redis, with their clients.
type service struct {
	*testing.T
	redis  *redis.Client
	limit  limiting
	job    job
	all    []*process
	client *http.Client

	mu   sync.Mutex
	seen map[answer]int64
}

// An answer is to what was asked for; its status is 0 if there was none.
type answer struct {
	how    string
	status int
}

// A process serves, or asks.
type process struct {
	name, url string
	cmd       *exec.Cmd
	in        io.Closer
	out       *bufio.Reader
}

// startService starts the processes.
func startService(t *testing.T, policy string, burst int64, limit limiting) *service {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	addr := redistest.Start(t).Addr()
	transport := &http.Transport{MaxIdleConnsPerHost: 2 * clientsEach}
	s := &service{
		T: t, redis: patientClient(addr), limit: limit, client: &http.Client{Transport: transport}, seen: make(map[answer]int64),
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
		p.url = p.line(t, serves)
	}
	return s
}

func (s *service) start(j job) *process {
	s.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		s.Fatal(err)
	}
	p := &process{name: j.Name, cmd: exec.Command(os.Args[0], "-test.run=^TestProcess$", "-test.timeout=5m")}
	p.cmd.Env = append(os.Environ(), jobEnv+"="+string(text), "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = os.Stderr
	in, inErr := p.cmd.StdinPipe()
	out, outErr := p.cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		s.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(p.kill)
	p.in, p.out = in, bufio.NewReader(out)
	return p
}

// kill ends a process as a crash would, and returns when it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()         // it was killed
}

// line returns what follows the prefix of the first line that has it.
func (p *process) line(t *testing.T, prefix string) string {
	t.Helper()
	var read bytes.Buffer
	for {
		line, err := p.out.ReadString('\n')
		read.WriteString(line)
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			return strings.TrimSpace(rest)
		}
		if err != nil {
			t.Fatalf("a process ended early, and said %s", read.String())
		}
	}
}

// stop shuts processes down, which settles what is left to settle.
func (s *service) stop(some ...*process) {
	s.Helper()
	s.client.CloseIdleConnections() // servers wait for those that were never used
	for _, p := range some {
		_ = p.in.Close() // if it is gone, Wait says so
	}
	for _, p := range some {
		said, _ := io.ReadAll(p.out) // up to its end, however it ends
		if err := p.cmd.Wait(); err != nil {
			s.Errorf("%s: %v: %s", p.name, err, said)
		}
	}
}

// post asks a process, and returns the status of the answer, or 0 and why there is none. Nothing is asked twice.
func (s *service) post(ctx context.Context, p *process, path string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/"+path, nil)
	if err != nil {
		return 0, err
	}
	status := 0
	resp, err := s.client.Do(r)
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

// ask is post for those who want to know no more than the status.
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

// books returns what processes have written, together.
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

// used returns what Redis will count after a while, debt included.
func (s *service) used(after time.Duration) int64 {
	s.Helper()
	c := algorithms.Check{Policy: s.job.Policy, Key: everyone, Limit: s.limit(10_000)}
	s.do(&c, after)
	return c.Limit.Burst() - c.Decision.Remaining
}

// do asks Redis, at some time after now.
func (s *service) do(c *algorithms.Check, after time.Duration) {
	s.Helper()
	o := &algorithms.RedisOptions{Timeout: time.Minute}
	if after > 0 {
		o.Now = func() time.Time { return time.Now().Add(after) }
	}
	checks := []algorithms.Check{*c}
	if err := algorithms.Must(algorithms.NewRedis(s.redis, o)).Allow(s.Context(), checks); err != nil {
		s.Fatal(err)
	}
	c.Decision = checks[0].Decision
}

// until waits until something holds.
func (s *service) until(what string, holds func() bool) {
	s.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(2 * ms) {
		if time.Now().After(end) {
			s.Fatalf("not in %v: %s; %d are used, and the books say %v", patience, what, s.used(0), s.books(s.all...))
		}
	}
}

// await waits until all requests of processes have ended, and are settled.
func (s *service) await(some ...*process) {
	s.Helper()
	s.until("all is settled", func() bool {
		book := s.books(some...)
		return book[ended] == begunOf(book) && book[settled] == book[due]
	})
}

// fill asks until every process denies, and so the limit is used up.
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
