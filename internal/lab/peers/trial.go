package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/internal/lab/nottest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A trial is one library and one promise. Its end closes what it has started.
type trial struct {
	*nottest.Owner
	library library
	addr    string // of redis-server; empty until an instance needs it

	// distance is how long the instances' network delays replies of redis-server. Set it before the first instance.
	distance time.Duration

	// late is how late the clock of the next instance is.
	late time.Duration
}

// redis returns the address of the trial's redis-server.
func (t *trial) redis() string {
	if t.addr == "" {
		t.addr = redistest.Start(t).Addr()
		if t.distance > 0 {
			network := redistest.StartProxy(t, t.addr)
			network.Set(redistest.Delay(t.distance))
			t.addr = network.Addr()
		}
	}
	return t.addr
}

// client returns a client of an instance's own, with go-redis's defaults.
func (t *trial) client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: t.redis()})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// open returns an instance of the library's limiter.
func (t *trial) open(q quota) take {
	if t.library.open != nil {
		return t.library.open(t, q)
	}
	return overHTTP(t.library.handler(t, q, byClient))
}

// ask takes units, and ends the trial if the limiter fails.
func (l take) ask(key string, n int) answer { return nottest.Must(l(key, n)) }

// admitted sends requests, and returns how many of them are admitted.
func (l take) admitted(key string, requests int) (n int) {
	for range requests {
		if l.ask(key, 1).allowed {
			n++
		}
	}
	return n
}

// sleep waits until d after from.
func sleep(from time.Time, d time.Duration) { time.Sleep(time.Until(from.Add(d))) }

// served is the handler behind the limiters.
var served = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// Headers by which adapters of middleware name a client, the second part of its key, and the cost of a request.
const (
	clientHeader = "X-Client"
	secondHeader = "X-Second"
	costHeader   = "X-Cost"
)

// overHTTP takes units with requests to a handler that counts by clientHeader.
func overHTTP(h http.Handler) take {
	return func(key string, n int) (answer, error) { return ask(h, clientHeader, key, costHeader, strconv.Itoa(n)) }
}

// remainingItem finds r in the field RateLimit of the IETF draft.
var remainingItem = regexp.MustCompile(`;r=(\d+)`)

// ask sends a request with pairs of headers and values, and returns what a client learns from the response.
func ask(h http.Handler, headers ...string) (answer, error) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fields, a := w.Header(), answer{allowed: w.Code < 400, remaining: untold, wait: untold}
	if w.Code >= 400 && w.Code != http.StatusTooManyRequests {
		return a, fmt.Errorf("status %d", w.Code)
	}
	for _, name := range []string{"X-RateLimit-Remaining", "RateLimit-Remaining"} {
		if n, err := strconv.Atoi(fields.Get(name)); err == nil {
			a.remaining = n
		}
	}
	if m := remainingItem.FindStringSubmatch(fields.Get("RateLimit")); m != nil {
		a.remaining, _ = strconv.Atoi(m[1])
	}
	if after := fields.Get("Retry-After"); after != "" {
		if seconds, err := strconv.Atoi(after); err == nil {
			a.wait = time.Duration(seconds) * time.Second
		} else if at, err := http.ParseTime(after); err == nil {
			a.wait = time.Until(at)
		} else {
			a.unreadable = after
		}
	}
	return a, nil
}
