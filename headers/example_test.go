package headers_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/headers"
)

// A quota for the examples, made once when the program starts.
var perUser = mustQuota(headers.QuotaConfig{
	Name: "peruser", Limit: 100, Requests: 100, Window: time.Minute, Continuous: true,
})

func mustQuota(c headers.QuotaConfig) *headers.Quota {
	q, err := headers.NewQuota(c)
	if err != nil {
		panic(err)
	}
	return q
}

// show prints the fields in the order of their names.
func show(h http.Header) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		fmt.Printf("%s: %s\n", name, strings.Join(h[name], ", "))
	}
}

// A handler answers a denial itself.
func Example() {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		wait := 1800 * time.Millisecond // from the limiter
		h := w.Header()
		headers.Draft.Write(h, headers.Response{
			Quotas:     []*headers.Quota{perUser},
			States:     []headers.State{{Quota: perUser, Denied: true, Remaining: 2, RetryAfter: wait}},
			Denied:     true,
			RetryAfter: wait,
		})
		h.Set("Cache-Control", "no-store")
		http.Error(w, "try again later", http.StatusTooManyRequests)
	})

	rec := httptest.NewRecorder()
	handler.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/", nil))
	fmt.Println(rec.Code)
	show(rec.Header())
	fmt.Println(rec.Body)
	// Output:
	// 429
	// Cache-Control: no-store
	// Content-Type: text/plain; charset=utf-8
	// Ratelimit: "peruser";r=2;t=2
	// Ratelimit-Policy: "peruser";q=100;w=60
	// Retry-After: 2
	// X-Content-Type-Options: nosniff
	// try again later
}

// An admitted response has the fields of all dialects.
func ExampleDialect_Write() {
	h := http.Header{}
	dialect := headers.Draft | headers.SeparateFields | headers.XRateLimit
	dialect.Write(h, headers.Response{
		Quotas: []*headers.Quota{perUser},
		States: []headers.State{{Quota: perUser, Remaining: 42, ResetAfter: 34800 * time.Millisecond}},
		Now:    time.Unix(1795262400, 0),
	})
	show(h)
	// Output:
	// Ratelimit: "peruser";r=42;t=26
	// Ratelimit-Limit: 100
	// Ratelimit-Policy: "peruser";q=100;w=60
	// Ratelimit-Remaining: 42
	// Ratelimit-Reset: 35
	// X-Ratelimit-Limit: 100
	// X-Ratelimit-Remaining: 42
	// X-Ratelimit-Reset: 1795262435
}

// A policy that could not decide sends its promise, and no numbers.
func ExampleDialect_Write_undecided() {
	h := http.Header{}
	headers.Draft.Write(h, headers.Response{Quotas: []*headers.Quota{perUser}})
	show(h)
	// Output:
	// Ratelimit-Policy: "peruser";q=100;w=60
}

// Dialects combine. The zero value is the default.
func ExampleDialect() {
	fmt.Println(headers.Draft | headers.XRateLimit)
	fmt.Println(headers.Dialect(0))
	// Output:
	// draft,x-ratelimit
	// draft,separate
}

func ExampleDialect_String() {
	fmt.Println(headers.SeparateFields.String())
	fmt.Println((headers.SeparateFields | 0x40).String())
	// Output:
	// separate
	// separate,0x40
}

func ExampleDialect_ExposeHeaders() {
	h := http.Header{}
	h.Set("Access-Control-Expose-Headers", strings.Join(headers.Draft.ExposeHeaders(), ", "))
	fmt.Println(h.Get("Access-Control-Expose-Headers"))
	// Output:
	// RateLimit, RateLimit-Policy, Retry-After
}

func ExampleDialect_Validate() {
	fmt.Println((headers.Draft | headers.XRateLimit).Validate())
	fmt.Println(headers.Dialect(0x40).Validate())
	// Output:
	// <nil>
	// headers: dialect "0x40" has unknown bits 0x40: want draft, separate, x-ratelimit or milliseconds, or a combination
}

func ExampleParseDialect() {
	dialect, err := headers.ParseDialect("draft, x-ratelimit")
	fmt.Println(dialect, err)
	_, err = headers.ParseDialect("standard,draft,draft")
	fmt.Println(err)
	// Output:
	// draft,x-ratelimit <nil>
	// headers: unknown dialect "standard": want draft, separate, x-ratelimit or milliseconds
	// headers: dialect "draft" is listed twice: list it once
}

// A token bucket has a rate of 60 per minute and a burst of 10. The rate refills
// the burst in ten seconds.
func ExampleNewQuota() {
	q, err := headers.NewQuota(headers.QuotaConfig{
		Name:       "search",
		Limit:      10,
		Requests:   60,
		Window:     time.Minute,
		Continuous: true,
	})
	fmt.Println(q != nil, err)

	_, err = headers.NewQuota(headers.QuotaConfig{Name: "naïve", Limit: -1})
	fmt.Println(err)
	// Output:
	// true <nil>
	// headers: quota "naïve": bad name: want 1 to 64 characters of 0x20 to 0x7E
	// headers: quota "naïve": bad limit "-1": want 0 to 999999999999999
}

// A quota counts concurrent requests.
func ExampleNewQuota_unit() {
	q, err := headers.NewQuota(headers.QuotaConfig{Name: "inflight", Limit: 10, Unit: "concurrent-requests"})
	h := make(http.Header)
	headers.Draft.Write(h, headers.Response{Quotas: []*headers.Quota{q}})
	fmt.Println(h.Get("RateLimit-Policy"), err)
	// Output:
	// "inflight";q=10;qu="concurrent-requests" <nil>
}

// The limit of each customer comes from a database, so each response has another
// quota.
func ExampleQuota_Set() {
	var q headers.Quota
	for _, limit := range []int64{100, 250} {
		if err := q.Set(headers.QuotaConfig{Name: "plan", Limit: limit, Requests: limit, Window: time.Minute, Continuous: true}); err != nil {
			fmt.Println(err)
		}
		h := make(http.Header)
		headers.Draft.Write(h, headers.Response{Quotas: []*headers.Quota{&q}})
		fmt.Println(h.Get("RateLimit-Policy"))
	}
	// Output:
	// "plan";q=100;w=60
	// "plan";q=250;w=60
}

// A service refuses requests with a wait. The wait is rounded up, at least 1 s
// and at most 14 days. Never removes the field.
func ExampleDialect_Write_retryAfter() {
	for _, wait := range []time.Duration{0, 1500 * time.Millisecond, 365 * 24 * time.Hour, headers.Never} {
		h := http.Header{}
		headers.Draft.Write(h, headers.Response{Denied: true, RetryAfter: wait})
		fmt.Println(h)
	}
	// Output:
	// map[Retry-After:[1]]
	// map[Retry-After:[2]]
	// map[Retry-After:[1209600]]
	// map[]
}

// A service fails closed while its store is unavailable.
func ExampleDialect_Write_unavailable() {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		headers.Draft.Write(w.Header(), headers.Response{Denied: true, RetryAfter: 1500 * time.Millisecond})
		http.Error(w, "try again later", http.StatusServiceUnavailable)
	})

	rec := httptest.NewRecorder()
	handler.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/", nil))
	fmt.Println(rec.Code, rec.Header().Get("Retry-After"), rec.Body)
	// Output:
	// 503 2 try again later
}
