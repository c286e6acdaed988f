package main

import (
	"context"
	"net/http"
	"time"

	"github.com/sethvargo/go-limiter/httplimit"
	"github.com/sethvargo/go-limiter/memorystore"

	"github.com/penstock-go/penstock/internal/lab/nottest"
)

// goLimiter forgets keys after two windows.
var goLimiter = library{
	name: "sethvargo/go-limiter", slug: "go-limiter", module: "github.com/sethvargo/go-limiter", store: "memory",
	handler: func(t *trial, q quota, by keyed) http.Handler {
		store := nottest.Must(memorystore.New(&memorystore.Config{
			Tokens: uint64(q.requests), Interval: q.window, SweepInterval: time.Second, SweepMinTTL: 2 * q.window,
		}))
		t.Cleanup(func() { _ = store.Close(context.Background()) })
		key := httplimit.IPKeyFunc()
		if len(by) > 0 {
			key = func(r *http.Request) (string, error) { return r.Header.Get(by[0]), nil }
		}
		return nottest.Must(httplimit.NewMiddleware(store, key)).Handle(served)
	},
	absent: []string{"burst"},
	says: map[string]quote{
		"wait":      {"The middleware automatically set the following headers, conforming to the latest RFCs:", "README.md"},
		"burst":     {"Take attempts to remove a token from the named key.", "memorystore/store.go"},
		"instances": {"Memory is the fastest store, but only works on a single container/virtual machine since there's no way to share the state.", "README.md"},
	},
}
