package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"

	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/middleware"
)

// address returns the i-th remote address, for limits by IP.
func address(i int) string {
	return fmt.Sprintf("10.%d.%d.%d:", i>>16&255, i>>8&255, i&255) + strconv.Itoa(1024+i%60_000)
}

// handled sends requests of an address to a handler. Each goroutine has one request and
// one response, so that only the middleware is measured.
func handled(h http.Handler) func() take {
	return func() take {
		r := httptest.NewRequest(http.MethodPost, "/v1/charges", http.NoBody)
		r.Pattern = "POST /v1/charges" // as a ServeMux sets it
		w := &response{header: make(http.Header)}
		return func(_ context.Context, key string) (bool, error) {
			clear(w.header)
			w.status = http.StatusOK
			r.RemoteAddr = key
			h.ServeHTTP(w, r)
			switch w.status {
			case http.StatusOK:
				return true, nil
			case http.StatusTooManyRequests:
				return false, nil
			}
			return false, fmt.Errorf("status %d", w.status)
		}
	}
}

// A response is a ResponseWriter that only keeps the status and the header.
type response struct {
	header http.Header
	status int
}

func (w *response) Header() http.Header         { return w.header }
func (w *response) Write(p []byte) (int, error) { return len(p), nil }
func (w *response) WriteHeader(status int)      { w.status = status }

var served = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// unheard is an observer that ignores its events.
type unheard struct{}

func (unheard) Observe(context.Context, ratelimit.Event) {}

// observed has the options of middleware with an observer and the draft's headers.
var observed = ratelimit.Options{Headers: headers.Draft, Observers: []ratelimit.Observer{unheard{}}}
