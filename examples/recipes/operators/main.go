// Command operators limits an API, and gives its operators a console and a status page that no client reaches.
package main

import (
	"crypto/subtle"
	"errors"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
	"github.com/penstock-go/penstock/middleware/overrides"
	"github.com/penstock-go/penstock/middleware/statuspage"
)

// authorize admits who knows the token, as curl sends it with -u NAME:TOKEN, or with -H "Authorization: Bearer TOKEN". It
// returns a name for the log and for what the operator sets.
func authorize(token string) func(*http.Request) (who string, err error) {
	return func(r *http.Request) (string, error) {
		name, given, basic := r.BasicAuth()
		if !basic {
			name, given = "operator", strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		}
		if subtle.ConstantTimeCompare([]byte(given), []byte(token)) == 0 {
			return "", errors.New("not the token")
		}
		return name, nil
	}
}

// services returns the API, and what its operators need. instances are the operators' URLs of all instances.
func services(limiter algorithms.Limiter, table ratelimit.Overrides, token string, instances ...string) (api, operators http.Handler, err error) {
	page := statuspage.New(&statuspage.Options{Console: "curl -u $NAME:$TOKEN http://127.0.0.1:9090/limits"})
	limited, err := ratelimit.New(limiter, &ratelimit.Options{Overrides: table, Observers: []ratelimit.Observer{page}},
		ratelimit.Policy{Name: "api", Limit: algorithms.TokenBucket(100, time.Minute)})
	if err != nil {
		return nil, nil, err
	}
	c := console.New(limited)
	c.Instances = instances
	commands, err := c.Handler(authorize(token))
	mux := http.NewServeMux()
	mux.Handle("/limits/", http.StripPrefix("/limits", commands))
	mux.Handle("GET /status", page)
	return limited.Handler(http.NotFoundHandler()), mux, err
}

func main() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	limiter := ratelimit.Must(shared.New(rdb, nil))
	table := ratelimit.Must(overrides.NewRedis(rdb, limiter, nil)) // operators' changes, on all instances
	token := os.Getenv("TOKEN")
	if len(token) < 16 {
		log.Fatal("set TOKEN to at least 16 bytes")
	}
	api, operators, err := services(limiter, table, token, "http://127.0.0.1:9090/limits")
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(http.ListenAndServe("127.0.0.1:9090", operators)) }() // an address that clients do not reach
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", api))
}
