// Command logins stops guesses of passwords. Successful logins do not count.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

type form struct{ Account, Password string }

type formKey struct{}

// limits counts failures by address, by account, and all together. One request is one decision.
func limits(limiter algorithms.Limiter) (*ratelimit.Middleware, error) {
	failed := func(status int) bool { return status == http.StatusUnauthorized }
	account := keyfunc.Custom("login", func(r *http.Request) (string, error) {
		f, _ := r.Context().Value(formKey{}).(form)
		return strings.ToLower(strings.TrimSpace(f.Account)), nil // one account has one spelling
	})
	return ratelimit.New(limiter, nil,
		ratelimit.Policy{ // an address that goes on is banned for twenty minutes, then for forty, up to a day
			Name: "address", Limit: algorithms.SlidingWindowLog(20, 10*time.Minute), ChargeIf: failed, Fail: algorithms.FailClosed,
			Ban: &ratelimit.Ban{Denials: 20, Within: 10 * time.Minute, For: 20 * time.Minute, Max: 24 * time.Hour},
		},
		ratelimit.Policy{ // Hidden, because headers would tell a stranger how often others have tried
			Name: "account", Key: account, Limit: algorithms.SlidingWindowLog(5, 10*time.Minute), ChargeIf: failed, Hidden: true, Fail: algorithms.FailClosed,
		},
		ratelimit.Policy{ // many addresses that try one password on many accounts
			Name: "everyone", Key: keyfunc.Const("logins"), Limit: algorithms.TokenBucket(1_000, time.Minute), ChargeIf: failed, Capacity: true,
		})
}

// read puts the form into the context, because limits must not read the body.
func read(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var f form
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096)).Decode(&f); err != nil || f.Account == "" {
			http.Error(w, "want an account and a password", http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), formKey{}, f)))
	})
}

func login(w http.ResponseWriter, r *http.Request) {
	if f := r.Context().Value(formKey{}).(form); f.Password != "swordfish" { // ask your database
		http.Error(w, "wrong account or password", http.StatusUnauthorized)
	}
}

func main() {
	limited := ratelimit.Must(limits(algorithms.NewMemory(nil)))
	http.Handle("POST /login", read(limited.Handler(http.HandlerFunc(login))))
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", nil))
}
