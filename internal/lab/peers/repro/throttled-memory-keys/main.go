// throttled: two API keys that differ in case share a count.
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
)

func main() {
	store, _ := memstore.NewCtx(65536)
	rate, _ := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerHour(1)})
	limiter := throttled.HTTPRateLimiterCtx{RateLimiter: rate, VaryBy: &throttled.VaryBy{Headers: []string{"X-API-Key"}}}
	h := limiter.RateLimit(http.NotFoundHandler())
	ask := func(key string) int {
		r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		r.Header.Set("X-API-Key", key)
		h.ServeHTTP(w, r)
		return w.Code
	}
	first, second := ask("k7fQ"), ask("K7Fq")
	fmt.Println("first request of k7fQ:", first, "- first request of K7Fq:", second)
	if second == http.StatusTooManyRequests {
		os.Exit(1)
	}
}
