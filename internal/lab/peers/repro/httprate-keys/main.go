// httprate: JoinKeys lets two clients share a count.
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/go-chi/httprate"
)

func main() {
	tenant := func(r *http.Request) (string, error) { return r.Header.Get("Tenant"), nil }
	user := func(r *http.Request) (string, error) { return r.Header.Get("User"), nil }
	h := httprate.LimitBy(1, time.Hour, httprate.JoinKeys(tenant, user))(http.NotFoundHandler())
	ask := func(tenant, user string) int {
		r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		r.Header.Set("Tenant", tenant)
		r.Header.Set("User", user)
		h.ServeHTTP(w, r)
		return w.Code
	}
	first, second := ask("a:b", "c"), ask("a", "b:c")
	fmt.Println("first request of a:b and c:", first, "- first request of a and b:c:", second)
	if second == http.StatusTooManyRequests {
		os.Exit(1)
	}
}
