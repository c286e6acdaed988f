// The table of lanes is bounded, and keeps the lanes that are in use. Packages outside cannot see it.

package client

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func TestLanesAreBounded(t *testing.T) {
	transport, err := NewTransport(nil, &Options{Pace: true, Partition: func(r *http.Request) string { return r.Header.Get("Key") }})
	if err != nil {
		t.Fatal(err)
	}
	use := func(key string) *lane {
		req, err := http.NewRequest(http.MethodGet, "https://api.example.com/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Key", key)
		return transport.use(req)
	}
	held := use("held")
	blocked := use("blocked")
	blocked.pace.until = time.Now().Add(time.Minute)
	transport.lanes.put(blocked)
	for i := range 3 * maxLanes {
		transport.lanes.put(use(fmt.Sprint(i)))
		if n := len(transport.lanes.byKey); n > maxLanes {
			t.Fatalf("got %d lanes, want at most %d", n, maxLanes)
		}
	}
	if use("held") != held || use("blocked") != blocked {
		t.Error("a lane in use, or one that blocks, was forgotten")
	}
	var users []*lane
	for i := range 2 * maxLanes { // all in use
		users = append(users, use(fmt.Sprint("user", i)))
	}
	if n := len(transport.lanes.byKey); n > maxLanes {
		t.Errorf("got %d lanes, want at most %d", n, maxLanes)
	}
	for _, l := range users {
		transport.lanes.put(l)
		if l.users != 0 {
			t.Fatalf("got %d users after the last left", l.users)
		}
	}
}

// TestHeldUnitsUseTheirLane: a lane is in use until the last body is closed.
func TestHeldUnitsUseTheirLane(t *testing.T) {
	transport, err := NewTransport(base{}, &Options{Limiter: algorithms.NewMemory(nil), Limit: algorithms.Concurrent(1, time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodGet, "https://api.example.com/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	l := transport.lanes.byKey["origin=https://api.example.com"]
	if l.users != 1 {
		t.Errorf("got %d users before Close, want 1", l.users)
	}
	if err := resp.Body.Close(); err != nil || l.users != 0 {
		t.Errorf("got %d users after Close, %v, want none", l.users, err)
	}
}

// A base answers with a body.
type base struct{}

func (base) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("text"))}, nil
}
