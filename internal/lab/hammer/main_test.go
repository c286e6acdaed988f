// Tests of the load client.

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

const deadline = time.Minute // for what takes a healthy machine less than a second

// A text collects the output of a program. It is safe for concurrent use.
type text struct {
	mu sync.Mutex
	b  strings.Builder
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"127.0.0.1:8080"}, {"ftp://127.0.0.1"}, {"http://a", "http://b"}} {
		if code := run(t.Context(), args, new(text)); code != 2 {
			t.Errorf("%q: got exit code %d, want 2", args, code)
		}
	}
}

// TestHammer: the load client meets the limit of the server, waits, and goes on. It says so
// in its progress, and ends without a failure when it is interrupted.
func TestHammer(t *testing.T) {
	t.Parallel()
	orders := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
		Name: "orders", Limit: algorithms.TokenBucket(60, time.Minute).WithBurst(10),
	}))
	s := httptest.NewServer(orders.Handler(http.NotFoundHandler()))
	defer s.Close()
	out, ctx, stop := new(text), t.Context(), context.CancelFunc(nil)
	ctx, stop = context.WithCancel(ctx)
	defer stop()
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{s.URL}, out) }()
	// Ten requests pass at once; the next second admits one more.
	seen := waitForProgress(t, out, func(p progress) bool { return p.denials > 0 && p.requests-p.denials > 11 && p.waited > time.Second })
	stop()
	select {
	case code := <-ended:
		if code != 0 {
			t.Errorf("got exit code %d: %s", code, out)
		}
	case <-time.After(deadline):
		t.Fatal("the load client did not end")
	}
	last, err := lastProgress(out.String())
	if err != nil || !strings.HasSuffix(out.String(), "\n") || last.requests < seen.requests || last.failed > 0 {
		t.Errorf("got %q after %+v, %v", out, seen, err)
	}
}

// TestHammerWithoutServer: failures are counted, and do not spin.
func TestHammerWithoutServer(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	out := new(text)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- hammer(ctx, "http://"+closed.Addr().String(), out) }()
	seen := waitForProgress(t, out, func(p progress) bool { return p.failed >= hammers })
	stop()
	if err := <-ended; err != nil || seen.failed > 20*hammers {
		t.Errorf("got %v, %+v", err, seen)
	}
}

// A progress is a line of the load client.
type progress struct {
	took                                time.Duration
	requests, denials, returned, failed int
	waited                              time.Duration
}

func lastProgress(said string) (p progress, err error) {
	lines := strings.FieldsFunc(said, func(r rune) bool { return r == '\r' || r == '\n' })
	if len(lines) == 0 {
		return p, errors.New("no line yet")
	}
	var took, waited string
	_, err = fmt.Sscanf(strings.NewReplacer(":", " ", ",", "").Replace(lines[len(lines)-1]),
		"%s %d requests %d denials %d returned denied %d failed %s waited", &took, &p.requests, &p.denials, &p.returned, &p.failed, &waited)
	if err == nil {
		p.took, err = time.ParseDuration(took)
	}
	if err == nil {
		p.waited, err = time.ParseDuration(waited)
	}
	return p, err
}

func waitForProgress(t *testing.T, out *text, enough func(progress) bool) progress {
	t.Helper()
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if p, err := lastProgress(out.String()); err == nil && enough(p) {
			return p
		}
	}
	t.Fatalf("got %q", out)
	return progress{}
}
