// httprate: a client that has used 5 per 10 s is admitted again long before Retry-After.
package main

import (
	"fmt"
	"github.com/go-chi/httprate"
	"net/http"
	"net/http/httptest"
	"os"
	"time"
)

func main() {
	h := httprate.LimitBy(5, 10*time.Second, httprate.Key("client"))(http.NotFoundHandler())
	ask := func() (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		return w.Code, w.Header().Get("Retry-After")
	}
	time.Sleep(7 * time.Second) // into the window
	for range 5 {
		ask()
	}
	_, after := ask()
	time.Sleep(5 * time.Second)
	status, _ := ask()
	if fmt.Println("told to wait", after, "s; after 5 s the answer is", status); after == "10" && status != http.StatusTooManyRequests {
		os.Exit(1)
	}
}
