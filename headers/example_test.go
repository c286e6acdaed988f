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

// A handler that answers a denial itself.
func Example() {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		wait := 1800 * time.Millisecond // as the limiter said
		h := w.Header()
		headers.Draft.Write(h, headers.Response{
			Quotas:     []*headers.Quota{perUser},
			States:     []headers.State{{Quota: perUser, Denied: true, Remaining: 2, RetryAfter: wait}},
			Denied:     true,
			RetryAfter: wait,
		})
		headers.SetProblem(h)
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write(headers.QuotaExceeded(perUser.Name())) // the client may be gone
	})

	rec := httptest.NewRecorder()
	handler.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/", nil))
	fmt.Println(rec.Code)
	show(rec.Header())
	fmt.Println(rec.Body)
	// Output:
	// 429
	// Cache-Control: no-store
	// Content-Type: application/problem+json
	// Ratelimit: "peruser";r=2;t=2
	// Ratelimit-Policy: "peruser";q=100;w=60
	// Retry-After: 2
	// X-Content-Type-Options: nosniff
	// {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"violated-policies":["peruser"]}
}

// An admitted response in all dialects.
func ExampleDialect_Write() {
	h := http.Header{}
	dialect := headers.Draft | headers.Triple | headers.X
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

// A policy that could not decide is announced, but has no numbers.
func ExampleDialect_Write_undecided() {
	h := http.Header{}
	headers.Draft.Write(h, headers.Response{Quotas: []*headers.Quota{perUser}})
	show(h)
	// Output:
	// Ratelimit-Policy: "peruser";q=100;w=60
}

func ExampleDialect_ExposeHeaders() {
	h := http.Header{}
	h.Set("Access-Control-Expose-Headers", strings.Join(headers.Draft.ExposeHeaders(), ", "))
	fmt.Println(h.Get("Access-Control-Expose-Headers"))
	// Output:
	// RateLimit, RateLimit-Policy, Retry-After
}

func ExampleDialect_Validate() {
	fmt.Println((headers.Draft | headers.X).Validate())
	fmt.Println(headers.Dialect(0x40).Validate())
	// Output:
	// <nil>
	// headers: unknown bits in dialect "0x40": want any of draft, triple and x
}

func ExampleParseDialect() {
	dialect, err := headers.ParseDialect("draft, x")
	fmt.Println(dialect, err)
	_, err = headers.ParseDialect("standard")
	fmt.Println(err)
	// Output:
	// draft,x <nil>
	// headers: unknown dialect "standard": want draft, triple or x
}

// A token bucket of 60 per minute with a burst of 10: ten may come at once, and
// the rate brings ten back in ten seconds.
func ExampleNewQuota() {
	q, err := headers.NewQuota(headers.QuotaConfig{
		Name:       "search",
		Limit:      10,
		Requests:   60,
		Window:     time.Minute,
		Continuous: true,
	})
	fmt.Println(q, err)

	_, err = headers.NewQuota(headers.QuotaConfig{Name: "naïve", Limit: -1})
	fmt.Println(err)
	// Output:
	// "search";q=10;w=10 <nil>
	// headers: quota "naïve": a name is 1 to 64 characters of 0x20 to 0x7E
	// headers: quota "naïve": a limit is 0 to 999999999999999, got "-1"
}

// The unit of a quota, when it does not count requests.
func ExampleNewQuota_unit() {
	q, err := headers.NewQuota(headers.QuotaConfig{Name: "inflight", Limit: 10, Unit: "concurrent-requests"})
	fmt.Println(q, err)
	// Output:
	// "inflight";q=10;qu="concurrent-requests" <nil>
}

func ExampleRetryAfterSeconds() {
	for _, wait := range []time.Duration{time.Nanosecond, 2 * time.Second, 365 * 24 * time.Hour, headers.Never} {
		fmt.Println(headers.RetryAfterSeconds(wait))
	}
	// Output:
	// 1 true
	// 2 true
	// 2147483 true
	// 0 false
}

// The answer of a service whose store is out of reach, and which fails closed.
func ExampleSetRetryAfter() {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		headers.SetRetryAfter(w.Header(), 1500*time.Millisecond)
		headers.SetProblem(w.Header())
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write(headers.Problem(http.StatusServiceUnavailable)) // the client may be gone
	})

	rec := httptest.NewRecorder()
	handler.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/", nil))
	fmt.Println(rec.Code, rec.Header().Get("Retry-After"), rec.Body)
	// Output:
	// 503 2 {"type":"about:blank","title":"Service Unavailable","status":503}
}

func ExampleSetProblem() {
	h := http.Header{"Cache-Control": {"max-age=3600"}, "Etag": {`"v1"`}}
	headers.SetProblem(h)
	show(h)
	// Output:
	// Cache-Control: no-store
	// Content-Type: application/problem+json
	// X-Content-Type-Options: nosniff
}

func ExampleQuotaExceeded() {
	fmt.Printf("%s\n", headers.QuotaExceeded("peruser", "hourly"))
	fmt.Printf("%s\n", headers.QuotaExceeded()) // a policy denied that is not advertised
	// Output:
	// {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"violated-policies":["peruser","hourly"]}
	// {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429}
}

func ExampleProblem() {
	fmt.Printf("%s\n", headers.Problem(http.StatusUnauthorized))
	// Output:
	// {"type":"about:blank","title":"Unauthorized","status":401}
}

// Two clients wait for the end of the same window, and come back apart.
func ExampleJitter() {
	const window = time.Minute
	const left = 17301 * time.Millisecond
	end := time.Unix(1795262460, 0)
	for _, client := range []string{"usr=1", "usr=2"} {
		wait := left + headers.Jitter(headers.Spread(window), "peruser", client, end.Unix())
		fmt.Println(wait.Round(time.Millisecond))
	}
	// Output:
	// 19.889s
	// 18.756s
}

func ExampleSpread() {
	fmt.Println(headers.Spread(time.Second), headers.Spread(time.Minute), headers.Spread(time.Hour))
	// Output:
	// 1s 6s 30s
}
