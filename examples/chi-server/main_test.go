// Helpers of the tests.

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/internal/redistest"
)

const (
	deadline = time.Minute // for what takes a healthy machine less than a second

	asProgram = "CHI_SERVER_TEST_PROGRAM" // in the environment: run the program instead of its tests
)

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main() // exits
	}
	logging.Disable() // go-redis would log an error for each server that a test kills
	goleak.VerifyTestMain(m)
}

// backends runs test in memory and on a Redis of its own, in parallel. args choose the backend.
func backends(t *testing.T, test func(t *testing.T, args ...string)) {
	t.Helper()
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, "-redis", "redis://"+redistest.Start(t).Addr())
	})
}

// A server runs in a goroutine.
type server struct {
	url    string
	log    *text
	stop   context.CancelFunc
	done   chan struct{} // closed when the server has ended
	client *http.Client
}

// start starts a server on a free port, for which a Redis that is slow on a busy machine is no outage. The end of the test
// stops it, and wants no error and no API key in its log.
func start(t *testing.T, args ...string) *server {
	t.Helper()
	return startWith(t, deadline, args...)
}

// startForOutages starts a server with the deadline of Redis that users have.
func startForOutages(t *testing.T, args ...string) *server {
	t.Helper()
	return startWith(t, 0, args...)
}

func startWith(t *testing.T, deadline time.Duration, args ...string) *server {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	s := &server{log: new(text), stop: stop, done: make(chan struct{}), client: &http.Client{Transport: &http.Transport{}}}
	go func() {
		defer close(s.done)
		c, err := parse(append([]string{"-addr", "127.0.0.1:0"}, args...), s.log)
		if err != nil {
			t.Error(err)
			return
		}
		c.deadline = deadline
		if err := c.serve(ctx, slog.New(slog.NewTextHandler(s.log, nil))); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		s.stop()
		s.wait(t)
		for _, secret := range []string{"demo-free", "demo-pro", "demo-enterprise", "guess"} {
			if strings.Contains(s.log.String(), secret) {
				t.Errorf("an API key is in the log:\n%s", s.log)
			}
		}
	})
	s.url = s.listening(t)
	return s
}

// listening waits until the server listens, and returns its URL.
func (s *server) listening(t *testing.T) string {
	t.Helper()
	const says = "msg=listening url="
	s.says(t, says, 1)
	_, rest, _ := strings.Cut(s.log.String(), says)
	url, _, _ := strings.Cut(rest, " ")
	return url
}

// says waits until the log contains what so many times. More often fails the test.
func (s *server) says(t *testing.T, what string, times int) {
	t.Helper()
	redistest.UntilEmpty(t, fmt.Sprintf("the log has %q %d times", what, times), func() string {
		if got := strings.Count(s.log.String(), what); got > times {
			t.Fatalf("got %q %d times, want %d:\n%s", what, got, times, s.log)
		} else if got == times {
			return ""
		}
		select {
		case <-s.done:
			t.Fatalf("got an end instead of a server:\n%s", s.log)
		default:
		}
		return "its log is\n" + s.log.String()
	})
}

// settled waits until requests have made so many settlements.
func (s *server) settled(t *testing.T, times int) {
	t.Helper()
	want := fmt.Sprintf("\nratelimit_settlements_total{result=\"made\"} %d\n", times)
	redistest.Until(t, fmt.Sprintf("requests have made %d settlements", times), func() bool {
		return strings.Contains(s.send(t, "GET /metrics", "").body, want)
	})
}

// wait waits until the server has ended.
func (s *server) wait(t *testing.T) {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(deadline):
		t.Errorf("the server still runs %v after it was stopped:\n%s", deadline, s.log)
	}
}

// A reply is the answer of a server.
type reply struct {
	status int
	header http.Header
	body   string
}

// send sends a request such as "GET /v1/search". fields are names and values in turn. Any goroutine may call send. A
// request without an answer fails the test, and send returns the zero reply.
func (s *server) send(t *testing.T, line, body string, fields ...string) reply {
	t.Helper()
	return s.sendIn(t, context.Background(), strings.NewReader(body), line, fields...)
}

func (s *server) sendIn(t *testing.T, ctx context.Context, body io.Reader, line string, fields ...string) reply {
	t.Helper()
	method, path, _ := strings.Cut(line, " ")
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, body)
	if err != nil {
		t.Error(err)
		return reply{}
	}
	for field := range slices.Chunk(fields, 2) {
		request.Header.Set(field[0], field[1])
	}
	response, err := s.client.Do(request)
	if err != nil {
		t.Errorf("%s: %v", line, err)
		return reply{}
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Errorf("%s: %v", line, err)
	}
	return reply{response.StatusCode, response.Header, string(content)}
}

// left returns RateLimit-Remaining, or -1.
func (r reply) left() int {
	n, err := strconv.Atoi(r.header.Get("RateLimit-Remaining"))
	if err != nil {
		return -1
	}
	return n
}

// limitFields returns the names of the limit fields, in alphabetical order.
func (r reply) limitFields() []string {
	var names []string
	for name := range r.header {
		if strings.Contains(name, "Ratelimit") || name == "Retry-After" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// A text collects the output of a program. It is safe for concurrent use.
type text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
