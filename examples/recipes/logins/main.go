// Command logins stops guesses of passwords. Successful logins do not count.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

type form struct{ Account, Password string }

// limits counts failures by address, by account, and all together. One request is one decision.
func limits(limiter algorithms.Limiter) (*ratelimit.Middleware, error) {
	failed := func(status int) bool { return status == http.StatusUnauthorized }
	return ratelimit.New(limiter, nil,
		ratelimit.Policy{ // an address that goes on is banned for twenty minutes, then for forty, up to a day
			Name: "address", Limit: algorithms.SlidingWindowLog(20, 10*time.Minute), ChargeIf: failed, Fail: algorithms.FailClosed,
			Ban: &ratelimit.Ban{Denials: 20, Within: 10 * time.Minute, For: 20 * time.Minute, Max: 24 * time.Hour},
		},
		ratelimit.Policy{ // Hidden, because headers would tell a stranger how often others have tried
			Name: "account", Key: keyfunc.JSONField("login", "account"), Limit: algorithms.SlidingWindowLog(5, 10*time.Minute), ChargeIf: failed, Hidden: true, Fail: algorithms.FailClosed,
		},
		ratelimit.Policy{ // many addresses that try one password on many accounts
			Name: "everyone", Key: keyfunc.Const("logins"), Limit: algorithms.TokenBucket(1_000, time.Minute), ChargeIf: failed, Capacity: true,
		})
}

// login reads the body that the limits have read before.
func login(w http.ResponseWriter, r *http.Request) {
	var f form
	if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
		http.Error(w, "want an account and a password", http.StatusBadRequest)
	} else if f.Password != "swordfish" { // ask your database
		http.Error(w, "wrong account or password", http.StatusUnauthorized)
	}
}

func main() {
	limited := ratelimit.Must(limits(algorithms.NewMemory(nil)))
	http.Handle("POST /login", limited.Handler(http.HandlerFunc(login)))
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", nil))
}
