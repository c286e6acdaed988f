// httprate-redis: JoinKeys lets two clients share a count.
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"time"

	"github.com/go-chi/httprate"
	httprateredis "github.com/go-chi/httprate-redis"
)

func main() {
	server := exec.Command("redis-server", "--port", "7399", "--save", "")
	startFailed := server.Start()
	time.Sleep(time.Second)
	key := httprate.JoinKeys(func(r *http.Request) (string, error) { return r.FormValue("a"), nil }, func(r *http.Request) (string, error) { return r.FormValue("b"), nil })
	h := httprate.LimitBy(1, time.Hour, key, httprateredis.WithRedisLimitCounter(&httprateredis.Config{Host: "127.0.0.1", Port: 7399}))(http.NotFoundHandler())
	first, second := httptest.NewRecorder(), httptest.NewRecorder()
	h.ServeHTTP(first, httptest.NewRequest(http.MethodGet, "/?a=a:b&b=c", nil))
	h.ServeHTTP(second, httptest.NewRequest(http.MethodGet, "/?a=a&b=b:c", nil))
	fmt.Println("first request of a:b and c:", first.Code, "- first request of a and b:c:", second.Code, startFailed, server.Process.Kill())
	if second.Code == http.StatusTooManyRequests {
		os.Exit(1)
	}
}
