// Tests of the replay: it decides as the server did.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// TestReplayAgreesWithServer: clients that work at the same time send requests of all kinds, also in Redis. The server
// logs them, and the replay of the log denies the same requests and no others.
func TestReplayAgreesWithServer(t *testing.T) {
	const clients, each = 12, 200
	backends(t, func(t *testing.T, args ...string) {
		name := filepath.Join(t.TempDir(), "access.log")
		serveAny(t, name, clients, each, append(args, "-trusted-proxies", "127.0.0.0/8")...)
		r := replayed(t, name)
		if r.Requests != clients*each || r.Bad > 0 || r.WholeSeconds {
			t.Errorf("got %d requests and %d bad lines, want %d and 0, with fractions of seconds", r.Requests, r.Bad, clients*each)
		}
		if r.Differ > 0 {
			t.Errorf("%d requests are denied in only one of the log and the replay", r.Differ)
		}
		if r.Refused[429] < 100 || r.Refused[429] != r.Logged[429] || r.Refused[503] != r.Logged[503] {
			t.Errorf("got refusals %v, logged %v, want the same, many of 429", r.Refused, r.Logged)
		}
		denied := make(map[string]bool)
		for _, p := range r.Policies {
			denied[p.Policy] = denied[p.Policy] || p.Results[0].Denied > 0
		}
		for _, policy := range []string{"search", "reports", "login", "completions", "unmatched"} { // also on a slow machine
			if !denied[policy] {
				t.Errorf("%s denied nothing, so the test says nothing about it", policy)
			}
		}
	})
}

// serveAny runs a server with an access log, and lets clients send requests of all kinds.
func serveAny(t *testing.T, name string, clients, each int, args ...string) {
	t.Helper()
	s, end := startLogged(t, name, args...)
	var sending sync.WaitGroup
	for client := range clients {
		sending.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(client)))
			for range each {
				sendAny(t, s, random, fmt.Sprintf("192.0.2.%d", client%6))
			}
		})
	}
	sending.Wait()
	end()
}

// startLogged starts a server that decides one request at a time, and writes an access log.
func startLogged(t *testing.T, name string, args ...string) (s *server, end func()) {
	t.Helper()
	c, err := parse(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	l, err := newAccessLog(name, keyfunc.IP(&keyfunc.IPOptions{Trusted: c.trusted}))
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{limiter: algorithms.NewMemory(&algorithms.MemoryOptions{Now: l.clock}), table: overrides.NewMemory()}
	if c.redis != nil {
		rdb := c.redis.Open()
		limiter, err := shared.New(rdb, &shared.Options{Prefix: c.prefix, Now: l.clock, Deadline: deadline, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		b.limiter, b.closers = limiter, []func() error{limiter.Close, rdb.Close}
	}
	b.limiter = l.of(b.limiter)
	a, err := newAPI(t.Context(), c, b, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(l.middleware(a.router))
	s = &server{url: web.URL, client: &http.Client{Transport: &http.Transport{}}}
	return s, func() {
		s.client.CloseIdleConnections()
		web.Close()
		if err := errors.Join(a.close(context.Background()), l.close()); err != nil {
			t.Error(err)
		}
	}
}

// sendAny sends a request of any kind.
func sendAny(t *testing.T, s *server, random *rand.Rand, client string) {
	t.Helper()
	key := []string{"demo-free", "demo-pro", "demo-enterprise"}[random.IntN(3)]
	from := []string{"X-Forwarded-For", client}
	switch random.IntN(12) {
	case 0, 1:
		s.send(t, "GET /v1/orders/1", "", from...)
	case 2:
		s.send(t, "HEAD /v1/orders/2?of=all", "", append(from, "X-API-Key", key)...)
	case 3:
		s.send(t, "GET /v1/search?q=water&deep=1", "", from...)
	case 4:
		s.send(t, "GET /v1/reports", "", append(from, "X-API-Key", key)...)
	case 5:
		s.send(t, "GET /v1/exports", "", from...)
	case 6:
		s.send(t, "POST /v1/login", wrong, from...)
	case 7:
		s.send(t, "POST /v1/login", right, from...)
	case 8, 9:
		s.send(t, "POST /v1/charges", "", append(from, "X-API-Key", key)...)
	case 10:
		s.send(t, "POST /v1/completions", fmt.Sprintf(`{"max_tokens":%d}`, 1+random.IntN(3_000)), append(from, "X-API-Key", key)...)
	case 11:
		s.send(t, fmt.Sprintf("GET /nothing/%d", random.IntN(9)), "", "X-Forwarded-For", "192.0.2.1")
	}
}

// A report is what these tests read of a report.
type report struct {
	Requests     int
	Bad          int         `json:"bad_lines"`
	WholeSeconds bool        `json:"whole_seconds"`
	Unrouted     int         `json:"unmatched"`
	Unlimited    int         `json:"unlimited"`
	Refused      map[int]int `json:"refused"`
	Logged       map[int]int `json:"logged"`
	Differ       int         `json:"differ"`
	Policies     []struct {
		Policy, Limit, Route string
		Results              []struct{ Requests, Denied int64 }
	}
}

// replayed replays a log through the limits of the API.
func replayed(t *testing.T, name string, args ...string) (r report) {
	t.Helper()
	c, err := parse(append([]string{"-replay", name, "-format", "json"}, args...), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c.logs.Stdout = &out
	if err := c.replay(t.Context()); err != nil {
		text, _ := os.ReadFile(name)
		t.Fatalf("%v\n%.2000s", err, text)
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestReplayFlags: more files may follow the flags.
func TestReplayFlags(t *testing.T) {
	t.Parallel()
	c, err := parse([]string{"-replay", "a", "b", "-"}, io.Discard)
	if err != nil || fmt.Sprint(c.logs.Files) != "[a b -]" {
		t.Errorf("got %v and %v, want three files", c.logs.Files, err)
	}
}

// TestReplayOfCommonLog: the routes are those of the API, users have the plans of their accounts, and a HEAD is a GET.
func TestReplayOfCommonLog(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for i := range 120 {
		for _, request := range []string{"POST /v1/charges", "HEAD /v1/orders/7", "GET /nothing?x", "GET /metrics"} {
			fmt.Fprintf(&log, "192.0.2.1 - merchant-%d [23/Nov/2026:10:00:%02d +0000] \"%s HTTP/1.1\" 200 1\n", 1+i%2, i/2, request)
		}
	}
	name := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(name, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	r := replayed(t, name)
	limits := make(map[string]int64)
	for _, p := range r.Policies {
		limits[strings.TrimSpace(p.Policy+" "+p.Limit+" "+p.Route)] = p.Results[0].Requests
	}
	for series, want := range map[string]int64{
		"charges-merchant token-bucket 100/1m burst 10": 60, "charges-merchant token-bucket 1000/1m burst 100": 60, "charges-capacity token-bucket 10000/1s": 120,
		"orders token-bucket 60/1m burst 10 GET /v1/orders/{id}": 120, "unmatched token-bucket 60/1m": 120,
	} {
		if limits[series] != want {
			t.Errorf("%s: got %d requests, want %d of %v", series, limits[series], want, limits)
		}
	}
	if r.Unrouted != 0 || r.Unlimited != 120 {
		t.Errorf("got %d unmatched and %d unlimited requests, want 0, because a policy limits them, and 120", r.Unrouted, r.Unlimited)
	}
}
