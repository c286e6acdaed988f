// The table of lanes is bounded, and keeps the lanes that are in use. Packages outside cannot see it.

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
	blocked.all.until = time.Now().Add(time.Minute)
	transport.put(blocked)
	for i := range 3 * maxLanes {
		transport.put(use(fmt.Sprint(i)))
		if n := len(transport.lanes); n > maxLanes {
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
	if n := len(transport.lanes); n > maxLanes {
		t.Errorf("got %d lanes, want at most %d", n, maxLanes)
	}
	for _, l := range users {
		transport.put(l)
		if l.users != 0 {
			t.Fatalf("got %d users after the last left", l.users)
		}
	}
}

// TestRoutesAreBounded: at most maxRoutes have a line of their own, and they join the others when no request uses the lane
// and their waits are over.
func TestRoutesAreBounded(t *testing.T) {
	now := time.Now()
	l := &lane{users: 1, all: line{pace: newPace(time.Minute, false)}, routes: map[string]*line{}}
	for i := range 2 * maxRoutes {
		denied, other := &waiter{route: fmt.Sprint("denied ", i)}, &waiter{route: "other"}
		l.learn(denied, l.all.depart(now), statedDenial(time.Hour), now)
		l.learn(other, l.all.depart(now), &verdict{status: http.StatusOK}, now)
	}
	if len(l.routes) != maxRoutes {
		t.Errorf("got %d lines, want %d", len(l.routes), maxRoutes)
	}
	for _, own := range l.routes {
		own.until = now
	}
	if new(Transport).put(l); len(l.routes) != 0 {
		t.Errorf("got %d lines of an idle lane, want none", len(l.routes))
	}
}
