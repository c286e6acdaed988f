// Servers in the situations of the alerts, for Prometheus to scrape.

package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/internal/redistest"
)

// A scene is a server that Prometheus scrapes. The test repeats its rounds.
type scene struct {
	name  string // its instance
	url   string
	round func(t *testing.T)
}

const (
	regulars    = 18 // clients
	manyDenials = 8  // per second: more denials of one client raise an alert
)

// crowd is a server in memory. Each policy has clients of another kind.
func crowd(t *testing.T) scene {
	t.Helper()
	s := start(t, "-trusted-proxies", "127.0.0.0/8")
	get := func(t *testing.T, path, addr string) int {
		return s.send(t, "GET "+path, "", "X-Forwarded-For", addr).status
	}
	const greedy = "192.0.2.0"
	round := 0
	return scene{"crowd", s.url, func(t *testing.T) {
		round++
		for i := range regulars {
			addr := fmt.Sprintf("192.0.2.%d", i)
			if round == 1 {
				get(t, "/v1/orders/1", addr)
				get(t, "/nothing", addr)
			}
			get(t, "/v1/search?deep=1", addr) // all clients too often
		}
		for range 40 {
			get(t, "/v1/orders/1", greedy) // one of many clients, in each round
		}
		for range 10 {
			s.send(t, "POST /v1/login", wrong) // the only client
			get(t, "/v1/exports", greedy)      // of the capacity of all clients
		}
		for i := 0; round == 2 && i < 75; i++ {
			get(t, "/nothing", greedy) // one of many clients, which stops soon after its 60
		}
	}}
}

// charge sends a request that no limit denies, with Redis or without.
func (s *server) charge(t *testing.T) {
	t.Helper()
	if r := s.send(t, "POST /v1/charges", "", "X-API-Key", "demo-enterprise"); r.status != http.StatusOK {
		t.Errorf("charge: got %d, want 200", r.status)
	}
}

// chargeUntil sends charges until the log has a text so many times.
func (s *server) chargeUntil(t *testing.T, says string, times int) {
	t.Helper()
	redistest.UntilEmpty(t, fmt.Sprintf("the log has %q %d times", says, times), func() string {
		if strings.Count(s.log.String(), says) >= times {
			return ""
		}
		s.charge(t)
		return "its log is\n" + s.log.String()
	})
}

// chargeUntilCircuits sends charges until so many circuits are open. The log says less about a circuit that flaps.
func (s *server) chargeUntilCircuits(t *testing.T, open int) {
	t.Helper()
	redistest.Until(t, fmt.Sprintf("%d circuits are open", open), func() bool {
		s.charge(t)
		return strings.Contains(s.send(t, "GET /metrics", "").body, fmt.Sprintf(`ratelimit_breaker_open{limiter="redis"} %d`, open))
	})
}

// healthy is a server with a Redis that is never in trouble.
func healthy(t *testing.T) scene {
	t.Helper()
	s := start(t, "-redis", "redis://"+redistest.Start(t).Addr())
	return scene{"healthy", s.url, func(t *testing.T) {
		for range 10 {
			s.charge(t)
		}
	}}
}

// refused is a server whose Redis revokes its rights for good.
func refused(t *testing.T) scene {
	t.Helper()
	redis := redistest.Start(t)
	s := startForOutages(t, "-redis", "redis://"+redis.Addr())
	admin := redis.Client()
	return scene{"refused", s.url, func(t *testing.T) {
		if err := admin.Do(t.Context(), "acl", "setuser", "default", "-evalsha", "-eval").Err(); err != nil {
			t.Fatal(err)
		}
		s.chargeUntil(t, gone, 1)
		s.charge(t)
		s.send(t, "POST /v1/login", right)
	}}
}

// flapping is a server whose Redis dies and comes back five times.
func flapping(t *testing.T) scene {
	t.Helper()
	redis := redistest.Start(t)
	s := startForOutages(t, "-redis", "redis://"+redis.Addr())
	deaths := 0
	return scene{"flapping", s.url, func(t *testing.T) {
		if deaths == 5 {
			s.charge(t)
			return
		}
		deaths++
		redis.Kill()
		s.chargeUntilCircuits(t, 1)
		redis.Restart()
		s.chargeUntilCircuits(t, 0)
	}}
}
