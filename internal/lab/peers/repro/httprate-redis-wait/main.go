// httprate-redis: a client that has used 5 per 10 s is admitted again long before Retry-After.
package main

import (
	"fmt"
	"github.com/go-chi/httprate"
	httprateredis "github.com/go-chi/httprate-redis"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"time"
)

func main() {
	server := exec.Command("redis-server", "--port", "7399", "--save", "")
	startFailed := server.Start()
	time.Sleep(17*time.Second - time.Since(time.Now().Truncate(10*time.Second))) // into a window of the clock
	h := httprate.LimitBy(5, 10*time.Second, httprate.Key("client"), httprateredis.WithRedisLimitCounter(&httprateredis.Config{Host: "127.0.0.1", Port: 7399}))(http.NotFoundHandler())
	var w, later = httptest.NewRecorder(), httptest.NewRecorder()
	for ; w.Code != http.StatusTooManyRequests; h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil)) {
		w = httptest.NewRecorder()
	}
	time.Sleep(5 * time.Second)
	h.ServeHTTP(later, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(startFailed, "told to wait", w.Header().Get("Retry-After"), "s; after 5 s the answer is", later.Code, server.Process.Kill())
	if w.Header().Get("Retry-After") == "10" && later.Code != http.StatusTooManyRequests {
		os.Exit(1)
	}
}
