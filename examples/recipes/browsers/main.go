// Command browsers lets scripts of another origin read the limit fields.
package main

import (
	"log"
	"net/http"
	"time"

	"github.com/rs/cors"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// newHandler puts CORS outside of the limit. Otherwise a browser hides denials from scripts, and without ExposeHeaders it
// hides Retry-After.
func newHandler(limiter algorithms.Limiter, next http.Handler) (http.Handler, error) {
	limited, err := ratelimit.New(limiter, nil, ratelimit.Policy{Name: "api", Limit: algorithms.TokenBucket(60, time.Minute)})
	if err != nil {
		return nil, err
	}
	return cors.New(cors.Options{
		AllowedOrigins: []string{"https://app.example.com"},
		ExposedHeaders: headers.Dialect(0).ExposeHeaders(), // 0 is the dialect of the zero Options
	}).Handler(limited.Handler(next)), nil
}

func main() {
	h := ratelimit.Must(newHandler(algorithms.NewMemory(nil), http.NotFoundHandler()))
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", h))
}
