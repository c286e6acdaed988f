package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
)

// A bearer sends its token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// An agent is a session of the official client.
type agent struct{ *mcp.ClientSession }

// A weather is the server, and its clock.
type weather struct {
	url   string
	clock atomic.Int64
}

func newWeather(t *testing.T) *weather {
	w := new(weather)
	memory := algorithms.NewMemory(&algorithms.MemoryOptions{Now: func() time.Time { return time.Unix(1_800_000_000, w.clock.Load()) }})
	server := httptest.NewServer(newHandler(memory, func(_ context.Context, key string) (keyfunc.Identity, error) {
		if key != "ann" && key != "bob" {
			return keyfunc.Identity{}, keyfunc.ErrUnknown
		}
		return keyfunc.Identity{ID: key}, nil
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *weather) connect(t *testing.T, user string) (agent, error) {
	transport := &mcp.StreamableClientTransport{Endpoint: w.url, HTTPClient: &http.Client{Transport: bearer(user)}}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err == nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return agent{s}, err
}

// call returns the denial of a call, nil if it is admitted.
func (a agent) call(t *testing.T, tool string) (denial *jsonrpc.Error) {
	t.Helper()
	r, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"name": "Oslo"}})
	if err != nil && !errors.As(err, &denial) || err == nil && r.IsError {
		t.Fatalf("%s: got %v and %+v, want an answer or a denial", tool, err, r)
	}
	return denial
}

// admitted makes n calls, which are admitted.
func (a agent) admitted(t *testing.T, n int, tool string) {
	t.Helper()
	for i := range n {
		if got := a.call(t, tool); got != nil {
			t.Fatalf("call %d of %s: got %+v, want it admitted", i, tool, got)
		}
	}
}

// waits makes a call that is denied for some seconds, waits as the denial says, and no millisecond less, and calls again.
func (a agent) waits(t *testing.T, w *weather, seconds time.Duration, tool string) {
	t.Helper()
	denied := a.call(t, tool)
	if denied == nil || denied.Code != 429 || denied.Message != fmt.Sprintf("Too Many Requests. Retry in %d s.", seconds) {
		t.Fatalf("%s: got %+v, want a denial for %d s", tool, denied, seconds)
	}
	var told struct {
		Milliseconds int64 `json:"retryAfterMs"`
	}
	if err := json.Unmarshal(denied.Data, &told); err != nil || told.Milliseconds != 1000*int64(seconds) {
		t.Fatalf("%s: got %s, error %v, want %d s", tool, denied.Data, err, seconds)
	}
	w.clock.Add((told.Milliseconds - 1) * int64(time.Millisecond))
	if a.call(t, tool) == nil {
		t.Errorf("%s: admitted before the wait was over", tool)
	}
	w.clock.Add(int64(time.Millisecond))
	a.admitted(t, 1, tool)
}

func TestAgents(t *testing.T) {
	w := newWeather(t)
	connect := func(user string) agent {
		a, err := w.connect(t, user)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	ann, second, bob := connect("ann"), connect("ann"), connect("bob")

	// One tool is used up, in all sessions of its user.
	ann.admitted(t, 12, "forecast")
	if second.call(t, "forecast") == nil {
		t.Error("another session of the user has another limit of the tool")
	}
	ann.admitted(t, 1, "history")
	bob.admitted(t, 12, "forecast")
	ann.waits(t, w, 5, "forecast")

	// One session has used up its limit.
	w.clock.Add(int64(time.Minute)) // all limits are full again
	ann.admitted(t, 12, "forecast")
	ann.admitted(t, 8, "history")
	second.admitted(t, 1, "warnings")
	ann.waits(t, w, 3, "warnings")

	// One user has, in two sessions. The denials have charged no limit.
	w.clock.Add(int64(time.Minute))
	ann.admitted(t, 12, "forecast")
	ann.admitted(t, 8, "history")
	second.admitted(t, 10, "warnings")
	bob.admitted(t, 1, "warnings")
	second.waits(t, w, 2, "warnings")
}

func TestStrangers(t *testing.T) {
	if _, err := newWeather(t).connect(t, "eve"); err == nil {
		t.Error("a client with an unknown key has connected")
	}
}
