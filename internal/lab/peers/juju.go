package main

import "github.com/juju/ratelimit"

var jujuNoKey = quote{"Bucket represents a token bucket that fills at a predetermined rate.", "ratelimit.go"}

// jujuRatelimit is a map of buckets.
var jujuRatelimit = library{
	name: "juju/ratelimit", slug: "juju", module: "github.com/juju/ratelimit", store: "memory",
	open: func(_ *trial, q quota) (*limiter, error) {
		buckets := &perKey[*ratelimit.Bucket]{make: func(string) *ratelimit.Bucket { return ratelimit.NewBucket(q.every(), int64(q.requests)) }}
		takeN := func(key string, n int) (answer, error) {
			b := buckets.of(key)
			_, ok := b.TakeMaxDuration(int64(n), 0)
			return answer{allowed: ok, remaining: int(b.Available()), wait: untold}, nil
		}
		return &limiter{take: func(key string) (answer, error) { return takeN(key, 1) }, takeN: takeN}, nil
	},
	absent: []string{"several", "wait", "expiry", "instances", "outage", "outage-limit", "forged", "keys", "refund"},
	says: map[string]quote{
		"":       jujuNoKey,
		"wait":   {"If it would take longer than maxWait for the tokens to become available, it does nothing and reports false", "ratelimit.go"},
		"refund": {"there is no way to return tokens to the bucket once this method commits us to taking them.", "ratelimit.go"},
	},
}
