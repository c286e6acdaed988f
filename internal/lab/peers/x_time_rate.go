package main

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// xTimeRate is a map of limiters, as many services have it. It never forgets a key.
var xTimeRate = library{
	name: "golang.org/x/time/rate", slug: "x-time-rate", module: "golang.org/x/time", store: "memory",
	open: func(_ *trial, q quota) take {
		var limiters sync.Map
		return func(key string, n int) (answer, error) {
			one, found := limiters.Load(key)
			if !found {
				one, _ = limiters.LoadOrStore(key, rate.NewLimiter(rate.Every(q.every()), q.requests))
			}
			l := one.(*rate.Limiter)
			now := time.Now()
			r := l.ReserveN(now, n)
			a := answer{allowed: r.OK() && r.DelayFrom(now) == 0, wait: never}
			if r.OK() {
				a.wait = r.DelayFrom(now)
			}
			if !a.allowed {
				r.CancelAt(now)
			}
			a.remaining = int(l.TokensAt(now))
			return a, nil
		}
	},
	costs:  true,
	absent: []string{"expiry", "forged", "keys"},
	says:   map[string]quote{"": {"A Limiter controls how frequently events are allowed to happen.", "rate/rate.go"}},
}
