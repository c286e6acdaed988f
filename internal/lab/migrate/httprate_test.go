package migrate

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/httprate"
	httprateredis "github.com/go-chi/httprate-redis"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/limitertest"
	"github.com/penstock-go/penstock/internal/redistest"
)

func TestHTTPRate(t *testing.T) {
	t.Parallel()
	var lines []string
	always := []row{
		denied,
		{"httprate resets at the end of its window, penstock when the whole limit is back", "`X-RateLimit-Reset` of the first request", []string{"X-Ratelimit-Reset"}},
		{"httprate tells clients to wait for a window, penstock until they are admitted", "`Retry-After` of request 101", []string{"Retry-After"}},
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(20 * time.Second) // of a minute of the clock
		lines = compare(t, httprateBefore(order), httprateAfter(order, algorithms.NewMemory(nil)), always, []step{
			{send: 100},
			{},
			{from: "[2001:db8::1]:1", send: 100},
			{from: "[2001:db8::2]:1"}, // the same /64
			{before: pause(59 * time.Second), rows: []row{
				{"In memory, httprate's windows begin with the process; penstock's follow the clock", "status 59 s after request 101, 19 s after the minute has turned", []string{"status"}},
			}},
		})
	})
	synctest.Test(t, func(t *testing.T) {
		lines = append(lines, compare(t, httprateBefore(order), httprateAfter(order, algorithms.NewMemory(nil)), nil, []step{
			{send: 100, rows: []row{{"", "", []string{"X-Ratelimit-Reset"}}}},
			{before: pause(60*time.Second + 400*time.Millisecond), rows: []row{
				{"httprate rounds its count to the nearest number, penstock upwards", "status 60.4 s after 100 requests at the turn of a minute", []string{"status"}},
			}},
		})...)
	})
	wantTable(t, "httprate", append(lines, httprateRedis(t)...))
}

// A program that ports httprate's options keeps the status of each request: over the limit, below it, without an account,
// and on each path. What httprate does not know, such as an outage that fails closed, has its own status.
func TestHTTPRateOptions(t *testing.T) {
	tooMany := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"error":"too many logins"}`))
	})
	synctest.Test(t, func(t *testing.T) {
		before, after := httprateLoginBefore(order, tooMany), httprateLoginAfter(order, algorithms.NewMemory(nil), tooMany)
		for _, s := range []step{
			{path: "/login", header: http.Header{"X-Account": {"a"}}}, {path: "/login", header: http.Header{"X-Account": {"b|c"}}}, {path: "/login"},
			{path: "/report/0"}, {path: "/report/1"}, {path: "/report/1", header: http.Header{"X-Account": {"a"}}},
		} {
			for i := range 5 {
				a, b := s.answerOf(before), s.answerOf(after)
				if a["status"] != b["status"] || a["body"] != b["body"] {
					t.Errorf("request %d of %s %v: got %v before and %v after", i, s.path, s.header, a, b)
				}
			}
		}
	})
	fake := limitertest.NewFake()
	fake.Fail(errors.New("down"))
	if got := (step{}).answerOf(httprateLoginAfter(order, fake, tooMany)); got["status"] != "503" {
		t.Errorf("while Redis is down: got %v, want 503", got)
	}
}

func httprateRedis(t *testing.T) []string {
	server := redistest.Start(t)
	host, text, err := net.SplitHostPort(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	redisCounter := httprateredis.WithRedisLimitCounter(&httprateredis.Config{Host: host, Port: uint16(port)})
	quiet(t, time.Minute)
	timed := []row{{"", "", []string{"Retry-After", "X-Ratelimit-Reset", "Content-Type", "body", "Cache-Control", "X-Content-Type-Options"}}}
	return compare(t, httprateBefore(order, httprate.Option(redisCounter)), httprateAfter(order, newShared(t, server.Client(), 0)), timed, []step{
		{send: 101},
		{from: "198.51.100.7:1"},
		{before: server.Kill, from: "198.51.100.7:1"}, // both count in memory, from 0
		{rows: []row{{"While Redis is down, both count in memory. httprate forgets denials; penstock remembers them", "status of a client that was denied just before", []string{"status"}}}},
	})
}
