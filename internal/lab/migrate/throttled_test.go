package migrate

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/throttled/throttled/v2/store/memstore"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

func TestThrottled(t *testing.T) {
	t.Parallel()
	var lines []string
	synctest.Test(t, func(t *testing.T) {
		store, err := memstore.NewCtx(65536)
		if err != nil {
			t.Fatal(err)
		}
		lines = compareThrottled(t, store, algorithms.NewMemory(nil),
			[]row{
				denied,
				{"throttled's reset is in seconds, penstock's in Unix seconds", "`X-RateLimit-Reset` of the first request", []string{"X-Ratelimit-Reset"}},
				{"All clients share this limit. throttled tells them one instant, penstock each denied client an instant of its own", "`Retry-After` of request 7", []string{"Retry-After"}},
			},
			[]step{
				{send: 6}, // MaxBurst + 1
				{},
				{before: pause(2999 * time.Millisecond)},
				{before: pause(time.Millisecond)},
				{},
				{before: pause(10 * time.Second), send: 3},
				{},
				{path: "/orders/2", rows: []row{
					{"throttled counts each path; this program of penstock counts each route", "status of `/orders/2` when `/orders/1` has used up its limit", []string{"status"}},
				}},
			})
	})
	wantTable(t, "throttled", append(lines, throttledFails(t)...))
}

func compareThrottled(t *testing.T, store throttled.GCRAStoreCtx, l algorithms.Limiter, always []row, trace []step) []string {
	t.Helper()
	before, err := throttledBefore(order, store)
	if err != nil {
		t.Fatal(err)
	}
	after := http.NewServeMux()
	after.Handle("GET /orders/{id}", throttledAfter(order, l))
	return compare(t, before, after, always, trace)
}

func throttledFails(t *testing.T) []string {
	server := redistest.Start(t)
	rdb := server.Client()
	store, err := goredisstore.NewCtx(rdb, "throttled:")
	if err != nil {
		t.Fatal(err)
	}
	timed := []row{{"", "", []string{"Retry-After", "X-Ratelimit-Reset", "Content-Type", "body", "Cache-Control", "X-Content-Type-Options"}}}
	return compareThrottled(t, store, newShared(t, rdb, 0), timed, []step{
		{send: 3},
		{before: server.Kill, rows: []row{
			{"While Redis is down, throttled answers 500; penstock counts in memory, or as `Policy.Fail` says", "status", []string{"status"}},
		}},
	})
}
