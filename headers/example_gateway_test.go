package headers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/penstock-go/penstock/headers"
)

// A limiter stands before a proxy whose upstream has a limit of its own. The client reads one line of each field, of the
// limit that is nearer.
func ExampleGateway() {
	perHour, err := headers.NewQuota(headers.QuotaConfig{Name: "perhour", Limit: 5, Requests: 5, Window: time.Hour, Continuous: true})
	if err != nil {
		panic(err)
	}
	limit := func(q *headers.Quota, left int64, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			headers.Draft.Write(w.Header(), headers.Response{
				Quotas: []*headers.Quota{q},
				States: []headers.State{{Quota: q, Remaining: left, ResetAfter: time.Minute}},
			})
			next.ServeHTTP(w, r)
		})
	}
	upstream := httptest.NewServer(limit(perHour, 1, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer upstream.Close()
	address, err := url.Parse(upstream.URL)
	if err != nil {
		panic(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(address)

	for _, next := range []http.Handler{proxy, headers.Gateway(proxy)} {
		w := httptest.NewRecorder()
		limit(perUser, 99, next).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Printf("%q\n", w.Header()["Ratelimit"])
	}
	// Output:
	// ["\"peruser\";r=99;t=60" "\"perhour\";r=1;t=3540"]
	// ["\"perhour\";r=1;t=3540"]
}
