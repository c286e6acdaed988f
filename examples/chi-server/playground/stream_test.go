// Tests of streams, and of their end.

package playground

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A listener is a page that receives a sandbox's levels.
type listener struct {
	status int
	lines  *bufio.Scanner
}

func (s *site) listen(t *testing.T, box string) *listener {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+box+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); response.Body.Close() })
	if response.Header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("got %v, want that proxies pass on each event at once", response.Header)
	}
	return &listener{response.StatusCode, bufio.NewScanner(response.Body)}
}

// until waits for a level. It fails the test if the stream ends before.
func (l *listener) until(t *testing.T, what string, is func(level) bool) {
	t.Helper()
	var last string
	for l.lines.Scan() {
		data, ok := strings.CutPrefix(l.lines.Text(), "data: ")
		if !ok {
			continue
		}
		var now level
		if err := json.Unmarshal([]byte(data), &now); err != nil {
			t.Fatal(err)
		}
		if last = data; is(now) {
			return
		}
	}
	t.Fatalf("got no level at which %s; the last was %s", what, last)
}

func TestStream(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	box := s.sandbox(t, "token-bucket 60/1m burst 3")
	l := s.listen(t, box)
	l.until(t, "all is there", func(now level) bool { return now.Remaining == 3 && now.Source == "local" && !now.Gone })
	s.send(t, "POST "+box+"/requests?cost=3", "")
	l.until(t, "something is gone", func(now level) bool { return now.Remaining < 3 })
	l.until(t, "all is back", func(now level) bool { return now.Remaining == 3 })
	s.send(t, "POST "+box+"/limit", `{"limit":"fixed-window 7/1m"}`)
	l.until(t, "the limit is another one", func(now level) bool { return now.Remaining == 7 && now.Limit == "fixed-window 7/1m" })
}

// TestStreamsEnd: streams end at once with Release, because Shutdown waits for them. After Close, sandboxes refuse
// requests.
func TestStreamsEnd(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	box := s.sandbox(t, "1/1s")
	l := s.listen(t, box)
	if !l.lines.Scan() {
		t.Fatal("got no level")
	}
	s.Release()
	for l.lines.Scan() {
	}
	if err := l.lines.Err(); err != nil {
		t.Errorf("got %v, want an end", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for _, line := range []string{"POST /demo/sandboxes", "POST " + box + "/requests", "GET " + box + "/events"} {
		if status, _, _ := s.send(t, line, `{"limit":"1/1s"}`); status != http.StatusServiceUnavailable {
			t.Errorf("%s after the end: got %d, want 503", line, status)
		}
	}
}

func TestTooManyStreams(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	box := s.sandbox(t, "1/1s")
	for i := range maxStreams {
		if l := s.listen(t, box); l.status != http.StatusOK {
			t.Fatalf("stream %d: got %d, want 200", i, l.status)
		}
	}
	if l := s.listen(t, box); l.status != http.StatusServiceUnavailable {
		t.Errorf("got %d for one too many, want 503", l.status)
	}
}

// TestHeld: Release ends a request in the queue of a leaky bucket.
func TestHeld(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	box := s.sandbox(t, "leaky-bucket 1/10s burst 1")
	s.send(t, "POST "+box+"/limit", `{"limit":"leaky-bucket 1/5s burst 2"}`)
	s.send(t, "POST "+box+"/requests", "")
	held := make(chan string)
	go func() {
		status, _, _ := s.send(t, "POST "+box+"/requests", "")
		held <- fmt.Sprint(status)
	}()
	s.listen(t, box).until(t, "the queue is full", func(now level) bool { return now.Remaining == 0 })
	s.Release()
	if got := <-held; got != "503" {
		t.Errorf("got %s for a held request, want 503", got)
	}
}
