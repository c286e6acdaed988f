package quota_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/quota"
)

// Customers see what is left before a 429 tells them. Looking costs nothing.
func ExampleHandler() {
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
		Name: "year", Limit: algorithms.PerYear(10_000, time.UTC),
	}))
	mux := http.NewServeMux()
	mux.Handle("GET /v1/quota", quota.Handler(limited))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/v1/quota", nil))
	fmt.Print(w.Body)
	// Output:
	// {"quotas":[{"policy":"year","limit":"calendar-window 10000/year","most":10000,"remaining":10000,"unit_after":0,"reset_after":0}]}
}
