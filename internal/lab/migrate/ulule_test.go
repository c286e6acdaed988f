package migrate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/internal/redistest"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

func TestUlule(t *testing.T) {
	t.Parallel()
	var lines []string
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(20 * time.Minute)                                                                  // of an hour of the clock
		store := ululememory.NewStoreWithOptions(limiter.StoreOptions{Prefix: limiter.DefaultPrefix}) // without its goroutine, which never ends
		lines = compareUlule(t, store, algorithms.NewMemory(nil),
			[]row{
				denied,
				{"penstock tells clients how long to wait, and spreads their return over 30 s", "`Retry-After` of a denial", []string{"Retry-After"}},
				{"ulule/limiter's windows begin with the first request of a key; penstock's follow the clock", "`X-RateLimit-Reset` of the first request, at 0:20", []string{"X-Ratelimit-Reset"}},
			},
			[]step{
				{send: 1000},
				{},
				{before: pause(40 * time.Minute), rows: []row{
					{"So in penstock all clients have their limits back at the turn of the hour", "status at 1:00", []string{"status"}},
				}},
				{from: "[2001:db8::1]:1", send: 1000},
				{from: "[2001:db8::2]:1", rows: []row{
					{"ulule/limiter counts each IPv6 address, penstock each /64", "status of 2001:db8::2, when 2001:db8::1 has used up its limit", []string{"status"}},
				}},
			})
	})
	synctest.Test(t, func(t *testing.T) { lines = append(lines, ululeRaised(t)...) })
	wantTable(t, "ulule/limiter", append(lines, ululeFails(t)...))
}

func compareUlule(t *testing.T, store limiter.Store, l algorithms.Limiter, always []row, trace []step) []string {
	t.Helper()
	before, err := ululeBefore(order, store)
	if err != nil {
		t.Fatal(err)
	}
	return compare(t, before, ululeAfter(order, l), always, trace)
}

// ululeRaised doubles the limit after ten denials.
func ululeRaised(t *testing.T) []string {
	store, memory := ululememory.NewStoreWithOptions(limiter.StoreOptions{}), algorithms.NewMemory(nil)
	denials := []row{{"", "", []string{"Content-Type", "body", "Cache-Control", "X-Content-Type-Options", "Retry-After", "X-Ratelimit-Reset"}}}
	compareUlule(t, store, memory, denials, []step{{send: 1010}})
	before := stdlib.NewMiddleware(limiter.New(store, limiter.Rate{Period: time.Hour, Limit: 2000})).Handler(order)
	after := ratelimit.Must(ratelimit.New(memory, &ratelimit.Options{Headers: headers.XRateLimit}, ratelimit.Policy{
		Name: "api", Limit: algorithms.FixedWindow(2000, time.Hour),
	})).Handler(order)
	return compare(t, before, after, nil, []step{{rows: []row{
		{"ulule/limiter counts denials, penstock only admitted requests", "`X-RateLimit-Remaining` of the next request, when the limit is doubled after 10 denials", []string{"X-Ratelimit-Remaining"}},
	}}})
}

func ululeFails(t *testing.T) []string {
	server := redistest.Start(t)
	rdb := server.Client()
	store, err := ululeredis.NewStore(rdb)
	if err != nil {
		t.Fatal(err)
	}
	quiet(t, time.Hour)
	timed := []row{{"", "", []string{"Retry-After", "X-Ratelimit-Reset"}}}
	return compareUlule(t, store, newShared(t, rdb, 0), timed, []step{
		{send: 3},
		{before: server.Kill, rows: []row{
			{"While Redis is down, ulule/limiter panics, unless it has an `ErrorHandler`; penstock counts in memory, or as `Policy.Fail` says", "status", []string{"status"}},
		}},
	})
}
