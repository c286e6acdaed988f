// httprate-redis: 16 instances share a limit of 101. Each reads the count, and raises it with another command.
package main

import (
	"fmt"
	"github.com/go-chi/httprate"
	httprateredis "github.com/go-chi/httprate-redis"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync/atomic"
	"time"
)

func main() {
	server, admitted := exec.Command("redis-server", "--port", "7399", "--save", ""), new(atomic.Int64)
	fmt.Println(server.Start(), exec.Command("sleep", "1").Run())
	for range 16 {
		h := httprate.LimitBy(101, time.Hour, httprate.KeyByEndpoint, httprateredis.WithRedisLimitCounter(&httprateredis.Config{Host: "127.0.0.1", Port: 7399}))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { admitted.Add(1) }))
		go func() {
			for n := range 20 * 20 { // 20 requests of each of 20 clients
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, fmt.Sprint("/", n/20), nil))
			}
		}()
	}
	time.Sleep(10 * time.Second)
	fmt.Println(server.Process.Kill(), admitted.Load(), "requests of 20 clients were admitted at 101 each")
	os.Exit(int(min(1, max(0, admitted.Load()-20*101)))) // 1 if more than that
}
