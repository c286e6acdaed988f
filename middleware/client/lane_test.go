// The table of lanes is bounded, and keeps the lanes that are in use.

package client

import (
	"fmt"
	"net/http"
	"testing"
	"time"
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
	blocked.pace.blocked = time.Now().Add(time.Minute)
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
