package migrate

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func TestTollbooth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := func(address string) http.Header { return http.Header{"X-Real-Ip": {address}} }
		const proxy = "10.0.0.1:1234"
		mux, after := http.NewServeMux(), http.NewServeMux()
		mux.Handle("GET /orders/{id}", tollboothBefore(order))
		after.Handle("GET /orders/{id}", tollboothAfter(order, algorithms.NewMemory(nil)))
		lines := compare(t, mux, after,
			[]row{
				denied,
				{"tollbooth's `X-Rate-Limit-` fields have the limit and the address of the peer; penstock writes no address", "`X-Rate-Limit-Request-Remote-Addr`", []string{"X-Rate-Limit-Request-Remote-Addr", "X-Rate-Limit-Duration", "X-Rate-Limit-Limit"}},
				{"penstock names the policy, its burst, and the seconds in which the burst refills", "`RateLimit-Policy`", []string{"Ratelimit-Policy"}},
				{"penstock tells clients how long to wait", "`Retry-After` of a denial", []string{"Retry-After", "Ratelimit-Reset"}},
			},
			[]step{
				{from: proxy, header: client("192.0.2.1")},
				{from: proxy, header: client("192.0.2.1")},
				{from: proxy, header: client("192.0.2.2")},
				{from: proxy, header: client("192.0.2.1"), before: pause(999 * time.Millisecond)},
				{from: proxy, header: client("192.0.2.1"), before: pause(time.Millisecond)}, // denials have cost nothing
				{from: proxy, header: client("192.0.2.1"), path: "/orders/2", rows: []row{
					{"tollbooth counts each path; this program of penstock counts each route", "status of `/orders/2` after `/orders/1`", []string{"status"}},
				}},
				{from: proxy, header: client("2001:db8::1")},
				{from: proxy, header: client("2001:db8::2")}, // the same /64
				{from: "198.51.100.7:1", send: 2, rows: []row{
					{"tollbooth does not limit requests without `X-Real-IP`; penstock counts the peer", "status of the second request past the proxy", []string{"status", "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset"}},
				}},
				{from: "198.51.100.8:1", header: client("192.0.2.8")},
				{from: "198.51.100.8:1", header: client("192.0.2.9"), rows: []row{
					{"tollbooth believes any peer; penstock believes only trusted proxies", "status of a client past the proxy that has changed its `X-Real-IP`", []string{"status"}},
				}},
			})
		wantTable(t, "tollbooth", lines)
	})
}
