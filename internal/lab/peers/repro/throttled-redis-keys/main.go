// throttled with Redis: two API keys that differ in case share a count.
package main

import (
	"fmt"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
)

func main() {
	server := exec.Command("redis-server", "--port", "7399", "--save", "")
	_ = server.Start()
	store, _ := goredisstore.NewCtx(redis.NewClient(&redis.Options{Addr: "127.0.0.1:7399", MaxRetries: 20}), "")
	rate, _ := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerHour(1)})
	limiter := throttled.HTTPRateLimiterCtx{RateLimiter: rate, VaryBy: &throttled.VaryBy{Headers: []string{"X-API-Key"}}}
	r, first, second := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder(), httptest.NewRecorder()
	r.Header = http.Header{"X-Api-Key": {"k7fQ"}}
	limiter.RateLimit(http.NotFoundHandler()).ServeHTTP(first, r)
	r.Header = http.Header{"X-Api-Key": {"K7Fq"}}
	limiter.RateLimit(http.NotFoundHandler()).ServeHTTP(second, r)
	fmt.Println("first request of k7fQ:", first.Code, "- first request of K7Fq:", second.Code, server.Process.Kill())
	if second.Code == http.StatusTooManyRequests {
		os.Exit(1)
	}
}
