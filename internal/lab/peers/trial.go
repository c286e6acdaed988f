package main

import (
	"context"
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
	library library
	owner   *nottest.Owner
	addr    string // of redis-server; empty until an instance needs it

	// distance is how long the instances' network delays replies of redis-server. Set it before the first instance.
	distance time.Duration

	// late is how late the clock of the next instance is.
	late time.Duration
}

// redis returns the address of the trial's redis-server.
func (t *trial) redis() string {
	if t.addr == "" {
		t.addr = redistest.Start(t.owner).Addr()
		if t.distance > 0 {
			network := redistest.StartProxy(t.owner, t.addr)
			network.Set(redistest.Delay(t.distance))
			t.addr = network.Addr()
		}
	}
	return t.addr
}

// client returns a client of an instance's own, with go-redis's defaults.
func (t *trial) client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: t.redis()})
	t.owner.Cleanup(func() { _ = c.Close() })
	return c
}

func (t *trial) ctx() context.Context { return t.owner.Context() }

// must ends the trial if there is an error.
func (t *trial) must(err error) {
	if err != nil {
		t.owner.Fatalf("%v", err)
	}
}

// open returns an instance of the library's limiter.
func (t *trial) open(q quota) *limiter {
	if t.library.open != nil {
		return &limiter{t, t.library.open(t, q)}
	}
	return &limiter{t, overHTTP(t.library.handler(t, q, byClient))}
}

// ask takes units, and ends the trial if the limiter fails.
func (l *limiter) ask(key string, n int) answer {
	a, err := l.take(key, n)
	l.trial.must(err)
	return a
}

// admitted sends requests, and returns how many of them are admitted.
func (l *limiter) admitted(key string, requests int) (n int) {
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

// ask sends a request with pairs of headers and values.
func ask(h http.Handler, headers ...string) (answer, error) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return read(w.Code, w.Header())
}

// remainingItem finds r in the field RateLimit of the IETF draft.
var remainingItem = regexp.MustCompile(`;r=(\d+)`)

// read returns what a client learns from a response.
func read(status int, h http.Header) (answer, error) {
	a := answer{allowed: status < 400, remaining: untold, wait: untold}
	if status >= 400 && status != http.StatusTooManyRequests {
		return a, fmt.Errorf("status %d", status)
	}
	for _, name := range []string{"X-RateLimit-Remaining", "RateLimit-Remaining"} {
		if n, err := strconv.Atoi(h.Get(name)); err == nil {
			a.remaining = n
		}
	}
	if m := remainingItem.FindStringSubmatch(h.Get("RateLimit")); m != nil {
		a.remaining, _ = strconv.Atoi(m[1])
	}
	if after := h.Get("Retry-After"); after != "" {
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
