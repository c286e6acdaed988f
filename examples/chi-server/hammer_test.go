// Tests of the load client.

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// TestHammer: the load client meets the limit of the server, waits, and goes on. It says so
// in its progress, and ends without a failure when it is interrupted.
func TestHammer(t *testing.T) {
	t.Parallel()
	s := start(t)
	out, ctx, stop := new(text), t.Context(), context.CancelFunc(nil)
	ctx, stop = context.WithCancel(ctx)
	defer stop()
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"-hammer", s.url + "/v1/orders/1"}, out) }()
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
