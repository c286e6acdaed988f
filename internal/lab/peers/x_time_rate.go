package main

import (
	"time"

	"golang.org/x/time/rate"
)

var xTimeNoKey = quote{"A Limiter controls how frequently events are allowed to happen.", "rate/rate.go"}

// xTimeRate is a map of limiters, as many services have it.
var xTimeRate = library{
	name: "golang.org/x/time/rate", slug: "x-time-rate", module: "golang.org/x/time", store: "memory",
	open: func(_ *trial, q quota) (*limiter, error) {
		limiters := &perKey[*rate.Limiter]{make: func(string) *rate.Limiter { return rate.NewLimiter(rate.Every(q.every()), q.requests) }}
		takeN := func(key string, n int) (answer, error) {
			l := limiters.of(key)
			now := time.Now()
			r := l.ReserveN(now, n)
			a := answer{allowed: r.OK() && r.DelayFrom(now) == 0, remaining: untold, wait: never}
			if r.OK() {
				a.wait = r.DelayFrom(now)
			}
			if !a.allowed {
				r.CancelAt(now)
			}
			a.remaining = int(l.TokensAt(now))
			return a, nil
		}
		return &limiter{take: func(key string) (answer, error) { return takeN(key, 1) }, takeN: takeN}, nil
	},
	absent: []string{"several", "expiry", "instances", "outage", "outage-limit", "forged", "keys", "refund"},
	says: map[string]quote{
		"several": xTimeNoKey, "expiry": xTimeNoKey, "instances": xTimeNoKey, "outage": xTimeNoKey, "outage-limit": xTimeNoKey,
		"forged": xTimeNoKey, "keys": xTimeNoKey,
		"refund": {"reverses the effects of this Reservation on the rate limit as much as possible, considering that other reservations may have already been made.", "rate/rate.go"},
	},
}
