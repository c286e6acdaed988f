// Examples of refusals of one's own.

package ratelimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// Browsers get a page, and all other clients the default answer. Refused also answers 401 and 503, so it writes the
// verdict's Status. It logs each denial with its client and the policy; without PlainKeys, the client is a hash.
func ExampleOptions_refused() {
	limiter := algorithms.NewMemory(nil)
	opts := &ratelimit.Options{PlainKeys: true, Refused: func(w http.ResponseWriter, r *http.Request, v ratelimit.Verdict) {
		for _, p := range v.Policies {
			fmt.Println("refused:", p.Name, p.Key, p.Outcome, v.Err)
		}
		if !strings.Contains(r.Header.Get("Accept"), "text/html") {
			ratelimit.Refuse(w, r, v)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(v.Status)
		fmt.Fprintf(w, "<h1>%s</h1>", http.StatusText(v.Status))
	}}
	limited := ratelimit.Must(ratelimit.New(limiter, opts, ratelimit.Policy{
		Name: "blocked", Key: keyfunc.IP(nil), Limit: algorithms.Nobody(),
	}))

	for _, accept := range []string{"text/html", "application/json"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept", accept)
		limited.Handler(http.NotFoundHandler()).ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Content-Type"))
	}
	// Output:
	// refused: blocked ip=192.0.2.1 denied <nil>
	// 403 text/html
	// refused: blocked ip=192.0.2.1 denied <nil>
	// 403 application/problem+json
}
