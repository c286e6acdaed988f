package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
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
	deadline = 10 * time.Second // for anything that a healthy machine does in a blink

	asProgram = "CHI_SERVER_TEST_PROGRAM" // in the environment: be the program, not its tests
)

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main() // exits
	}
	if err := os.Setenv("PENSTOCK_SECRET", "a secret of the tests"); err != nil {
		panic(err)
	}
	logging.Disable() // go-redis would print that servers, which tests kill, cannot be reached
	goleak.VerifyTestMain(m)
}

// backends runs test in parallel in memory and on a Redis of its own, with the arguments that choose it.
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

// A server is run, in a goroutine.
type server struct {
	url    string
	log    *text
	stop   context.CancelFunc
	done   chan struct{} // closed once code is the exit code
	code   int
	client *http.Client
}

// start starts a server on a free port. The test ends it, wants exit code 0 and no API key in its log.
func start(t *testing.T, args ...string) *server {
	t.Helper()
	return startHasty(t, 0, args...)
}

// startHasty is start for a server that leaves Redis alone for no longer than openFor.
func startHasty(t *testing.T, openFor time.Duration, args ...string) *server {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	s := &server{log: new(text), stop: stop, done: make(chan struct{}), client: &http.Client{Transport: &http.Transport{}}}
	go func() {
		defer close(s.done)
		c, err := parse(append([]string{"-addr", "127.0.0.1:0"}, args...), os.Getenv("PENSTOCK_SECRET"), s.log)
		if err != nil {
			t.Error(err)
			return
		}
		c.openFor = openFor
		s.code = c.run(ctx, s.log)
	}()
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		s.stop()
		s.wait(t)
		for _, secret := range []string{"demo-", "guess"} {
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

// says waits until the log has said it so many times, and fails the test if it has more often.
func (s *server) says(t *testing.T, what string, times int) {
	t.Helper()
	redistest.UntilEmpty(t, fmt.Sprintf("the server has said %q %d times", what, times), func() string {
		if got := strings.Count(s.log.String(), what); got > times {
			t.Fatalf("got %q %d times, want %d:\n%s", what, got, times, s.log)
		} else if got == times {
			return ""
		}
		select {
		case <-s.done:
			t.Fatalf("got exit code %d instead of a server:\n%s", s.code, s.log)
		default:
		}
		return "its log is\n" + s.log.String()
	})
}

// settled waits until a policy's requests have made as many settlements.
func (s *server) settled(t *testing.T, policy string, times int) {
	t.Helper()
	want := fmt.Sprintf("\nratelimit_settlements_total{policy=%q,result=\"made\"} %d\n", policy, times)
	redistest.Until(t, fmt.Sprintf("%s has made %d settlements", policy, times), func() bool {
		return strings.Contains(s.send(t, "GET /metrics", "").body, want)
	})
}

// wait waits for the exit code, and wants 0.
func (s *server) wait(t *testing.T) {
	t.Helper()
	select {
	case <-s.done:
		if s.code != 0 {
			t.Errorf("got exit code %d, want 0:\n%s", s.code, s.log)
		}
	case <-time.After(2 * deadline):
		t.Errorf("the server still runs %v after it was stopped:\n%s", 2*deadline, s.log)
	}
}

// A reply is what a server answered.
type reply struct {
	status int
	header http.Header
	body   string
}

// send sends a request such as "GET /v1/search", with names and values of header fields in turn. It may be called by
// any goroutine; a request without an answer fails the test and returns the zero reply.
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

// left is what RateLimit-Remaining says, -1 if nothing.
func (r reply) left() int {
	n, err := strconv.Atoi(r.header.Get("RateLimit-Remaining"))
	if err != nil {
		return -1
	}
	return n
}

// limitFields returns the names of the fields that speak of limits, in alphabetical order.
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

// A text is what a program prints. It is safe for concurrent use.
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
