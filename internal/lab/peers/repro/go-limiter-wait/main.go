// go-limiter: Retry-After ends in UTC, where an HTTP-date (RFC 9110, section 5.6.7) ends in GMT.
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/sethvargo/go-limiter/httplimit"
	"github.com/sethvargo/go-limiter/memorystore"
)

func main() {
	store, _ := memorystore.New(nil) // one per second
	m, _ := httplimit.NewMiddleware(store, httplimit.IPKeyFunc())
	w := httptest.NewRecorder()
	for ; w.Code != http.StatusTooManyRequests; m.Handle(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil)) {
		w = httptest.NewRecorder()
	}
	_, err := http.ParseTime(w.Header().Get("Retry-After"))
	fmt.Println("Retry-After:", w.Header().Get("Retry-After"), "-", err)
	if err != nil {
		os.Exit(1)
	}
}
