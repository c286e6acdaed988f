// Tests of sandboxes.

package playground

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/keyfunc"
)

// TestQuiet: a visitor's bad limits do not reach the operator's log. The test is not parallel, because it replaces
// slog.Default.
func TestQuiet(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	var log bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	s := start(t, Options{})
	_ = s.sandbox(t, "1/1m burst 5")
	box := s.sandbox(t, "1/1m burst 2") // the same policy name
	if status, _, _ := s.send(t, "POST "+box+"/requests?cost=3", ""); status != 429 {
		t.Errorf("got %d for more than the burst, want 429", status)
	}
	if log.Len() > 0 {
		t.Errorf("got a log of\n%swant none", log.String())
	}
}

func TestSandbox(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	box := s.sandbox(t, "1/1m burst 5")
	other := s.sandbox(t, "1/1m burst 5")
	tests := []struct {
		line   string
		body   string
		status int
		left   string // RateLimit-Remaining
	}{
		{box + "/requests", "", 200, "4"},
		{box + "/requests?cost=3", "", 200, "1"},
		{box + "/requests?cost=2", "", 429, "1"},
		{box + "/requests?cost=-7", "", 200, "0"}, // one
		{box + "/requests", "", 429, "0"},
		{other + "/requests", "", 200, "4"},
		{box + "/limit", `{"limit":"1/1m burst 8"}`, 200, ""},
		{box + "/requests", "", 200, "2"}, // units in use stay in use
		{box + "/limit", `{"limit":"fixed-window 8/1m"}`, 200, ""},
		{box + "/requests", "", 200, "7"}, // another algorithm has another count
	}
	for _, tt := range tests {
		status, header, body := s.send(t, "POST "+tt.line, tt.body)
		left := header.Get("RateLimit-Remaining")
		if status != tt.status || left != tt.left {
			t.Errorf("%s: got %d, %q left and %s, want %d and %q left", tt.line, status, left, body, tt.status, tt.left)
		}
	}
}

func TestLimitBounds(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	box := s.sandbox(t, "1/1s")
	for body, want := range map[string]int{
		`{"limit":"token-bucket 100/1m burst 100"}`:          200,
		`{"limit":"leaky-bucket 10/1s burst 5"}`:             200,
		`{"limit":"leaky-bucket 10/1s burst 6"}`:             400, // a browser could not fill it
		`{"limit":"fixed-window 100/1s"}`:                    200,
		`{"limit":"leaky-bucket 1/1m burst 2"}`:              400,
		`{"limit":"token-bucket 101/1m burst 1"}`:            400,
		`{"limit":"token-bucket 100/1m burst 101"}`:          400,
		`{"limit":"fixed-window 10/999ms"}`:                  400,
		`{"limit":"fixed-window 10/61s"}`:                    400,
		`{"limit":"fixed-window 10/1m burst 5"}`:             400,
		`{"limit":"nobody"}`:                                 400,
		`{"limit":""}`:                                       400,
		`{"limit":"1/1s","more":1}`:                          400,
		`{}`:                                                 400,
		``:                                                   400,
		`{"limit":"1/1s"` + strings.Repeat(" ", 1<<10) + `}`: 400, // too long
	} {
		if got, _, answer := s.send(t, "POST "+box+"/limit", body); got != want {
			t.Errorf("%.60s: got %d %s, want %d", body, got, answer, want)
		}
		if want == 200 {
			continue
		}
		if got, _, answer := s.send(t, "POST /demo/sandboxes", body); got != want {
			t.Errorf("a sandbox of %.60s: got %d %s, want %d", body, got, answer, want)
		}
	}
}

// TestOwnSandboxes: a visitor with too many sandboxes loses their own. TestTooManySandboxes has the rest.
func TestOwnSandboxes(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Visitor: keyfunc.IP(&keyfunc.IPOptions{Hops: 1})})
	other := s.sandbox(t, "1/1s", "X-Forwarded-For", "192.0.2.1")
	first := s.sandbox(t, "1/1s", "X-Forwarded-For", "192.0.2.2")
	for range maxSandboxes {
		s.sandbox(t, "1/1s", "X-Forwarded-For", "192.0.2.2")
	}
	if status, _, _ := s.send(t, "POST "+first+"/requests", ""); status != http.StatusNotFound {
		t.Errorf("got %d from the visitor's first sandbox, want 404", status)
	}
	if status, _, _ := s.send(t, "POST "+other+"/requests", ""); status != http.StatusOK {
		t.Errorf("got %d from another visitor's sandbox, want 200", status)
	}
	s.Page.mu.Lock()
	for _, box := range s.Page.open {
		box.users++
	}
	s.Page.mu.Unlock()
	for address, want := range map[string]int{"192.0.2.2": http.StatusServiceUnavailable, "192.0.2.3": http.StatusCreated} {
		if status, _, _ := s.send(t, "POST /demo/sandboxes", `{"limit":"1/1s"}`, "X-Forwarded-For", address); status != want {
			t.Errorf("%s: got %d while all sandboxes of 192.0.2.2 are in use, want %d", address, status, want)
		}
	}
}

// TestSlowLimit: a request whose body does not arrive does not keep its sandbox in use.
func TestSlowLimit(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	first := s.sandbox(t, "1/1s")
	body, writer := io.Pipe()
	defer writer.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+first+"/limit", body)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		response, err := s.client.Do(r)
		if err == nil {
			err = response.Body.Close()
		}
		answered <- err
	}()
	if _, err := writer.Write([]byte("{")); err != nil { // the server has the request
		t.Fatal(err)
	}
	for range maxOwn {
		s.sandbox(t, "1/1s")
	}
	if status, _, _ := s.send(t, "POST "+first+"/requests", ""); status != http.StatusNotFound {
		t.Errorf("got %d from the first sandbox, want 404, because others have replaced it", status)
	}
	writer.Close()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// TestTooManySandboxes: a new sandbox replaces the sandbox that was idle for the longest time, and none in use.
func TestTooManySandboxes(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Visitor: keyfunc.IP(&keyfunc.IPOptions{Hops: 1})})
	visitors := 0
	sandbox := func() string {
		visitors++
		return s.sandbox(t, "1/1s", "X-Forwarded-For", fmt.Sprintf("192.0.%d.%d", visitors/200, visitors%200))
	}
	first, second := sandbox(), sandbox()
	for range maxSandboxes - 2 {
		sandbox()
	}
	s.send(t, "POST "+first+"/requests", "")
	sandbox()
	if status, _, _ := s.send(t, "POST "+second+"/requests", ""); status != http.StatusNotFound {
		t.Errorf("got %d from the sandbox that was longest idle, want 404", status)
	}
	if status, _, _ := s.send(t, "POST "+first+"/limit", `{"limit":"2/1s"}`); status != http.StatusOK {
		t.Errorf("got %d from a sandbox that was used, want 200", status)
	}
	s.Page.mu.Lock()
	for _, box := range s.Page.open {
		box.users++
	}
	s.Page.mu.Unlock()
	if status, _, _ := s.send(t, "POST /demo/sandboxes", `{"limit":"1/1s"}`); status != http.StatusServiceUnavailable {
		t.Errorf("got %d while all are in use, want 503", status)
	}
}
