// Command offices counts users where it can, and addresses otherwise.
package main

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

type userKey struct{}

// user returns the user whom your authentication has put into the context.
func user(ctx context.Context) (keyfunc.Identity, bool) {
	id, ok := ctx.Value(userKey{}).(string)
	return keyfunc.Identity{ID: id}, ok
}

// limits counts the users behind an office's address one by one. A provider gives a customer an IPv6 network of 64, 56 or
// 48 bits. So visitors have two limits: a small one for 64 bits, and a larger one for 48 bits.
func limits(limiter algorithms.Limiter) (*ratelimit.Middleware, error) {
	network := keyfunc.IP(&keyfunc.IPOptions{IPv6Bits: 48})
	known := func(r *http.Request) bool { _, ok := user(r.Context()); return ok }
	return ratelimit.New(limiter, nil,
		ratelimit.Policy{Name: "client", Key: keyfunc.FirstOf(keyfunc.User(user), keyfunc.IP(nil)), Limit: algorithms.TokenBucket(60, time.Minute)},
		ratelimit.Policy{Name: "network", Key: network, Limit: algorithms.TokenBucket(300, time.Minute), Skip: known})
}

// authenticate stands for yours.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, password, ok := r.BasicAuth(); ok && password == "swordfish" {
			r = r.WithContext(context.WithValue(r.Context(), userKey{}, name))
		}
		next.ServeHTTP(w, r)
	})
}

func main() {
	limited := ratelimit.Must(limits(algorithms.NewMemory(nil)))
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", authenticate(limited.Handler(http.NotFoundHandler()))))
}
