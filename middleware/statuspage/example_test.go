package statuspage_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/statuspage"
)

// Operators read the page in a browser. Programs read its JSON.
func ExampleNew() {
	page := statuspage.New(nil)
	opts := &ratelimit.Options{Observers: []ratelimit.Observer{page}}
	orders := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), opts, ratelimit.Policy{
		Name: "orders", Limit: algorithms.TokenBucket(2, time.Minute),
	}))
	mux := http.NewServeMux()
	mux.Handle("GET /orders", orders.Handler(http.NotFoundHandler()))
	mux.Handle("GET /status", page) // behind your authentication

	for range 5 {
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/orders", nil))
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/status?format=json", nil))
	var status struct {
		Policies []struct {
			Name, Limit string
			Outcomes    map[string]int
		}
		Limiters []struct{ Name string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil {
		fmt.Println(err)
	}
	fmt.Println(status.Policies, status.Limiters)
	// Output: [{orders token-bucket 2/1m map[allowed:2 denied:3]}] [{memory}]
}
