package main

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/internal/lab/peers/scripts"
)

// articleScripts are the scripts of package scripts, in the order of their table.
var articleScripts = []library{
	script("incr", "a fixed window by INCR and EXPIRE",
		"It is short, atomic and cheap, and a key lives for one window.",
		"`PEXPIRE` stores an instant of the server's clock. If that clock is set back, the window lasts until the old instant. Every fixed window also admits twice its limit around its edge."),
	script("log-time", "a log with the time as member",
		"It counts over a window that slides, and a denied request leaves no entry.",
		"`ZADD KEY now now` overwrites the entry of another request of the same millisecond, so a crowd counts as a few."),
	script("log-unique", "a log with members of their own",
		"It is exact, also among four instances, as long as no clock is set.",
		"`ZREMRANGEBYSCORE KEY 0 now - window` keeps entries from a future that a clock took back, until the expiry, and that moved with the clock, too."),
	script("counter", "a counter over two windows",
		"It keeps all of these promises with two numbers per client. In a Cluster it needs a hash tag: it makes the names of its keys itself, and they would lie in other slots than `KEYS[1]`.",
		""),
	script("bucket", "a token bucket in a hash, by the caller's clock",
		"It refills evenly, survives steps of the clock, and its keys expire.",
		"`HSET updated now` lets a caller whose clock is late set the time back. The next caller refills the difference again, so late and punctual callers together have no limit."),
	script("bucket-forever", "a token bucket in a hash that never expires",
		"It never lets a late clock set the time back, and a denial writes nothing.",
		"There is no `EXPIRE`, so each client that ever came stays in Redis. After a clock that was ahead, `now - refilled` is negative until the old instant comes again."),
}

// onScripts are the promises that a script makes by being printed as a rate limiter.
var onScripts = []string{"crowd", "denial", "expiry", "clock", "skew", "instances", "keys"}

// concerns reports whether a limiter is held to p. Only scripts and penstock can be given a clock that is late.
func (p promise) concerns(l library) bool {
	if l.script {
		return slices.Contains(onScripts, p.name)
	}
	return p.name != "skew" || l.slug == penstockRedis.slug
}

// unique numbers the calls of scripts.
var unique atomic.Int64

// script returns the limiter that a script makes, as an application of several instances runs it.
func script(name, title, right, breaks string) library {
	run := redis.NewScript(scripts.Text(name))
	return library{
		name: title, slug: "script-" + name, store: "Redis", script: true, right: right, breaks: breaks,
		open: func(t *trial, q quota) take {
			client, late := t.client(), t.late
			return func(key string, _ int) (answer, error) {
				now := time.Now().Add(-late)
				n, err := run.Run(t.Context(), client, []string{key}, q.requests, q.window.Milliseconds(), now.UnixMilli(), unique.Add(1)).Int()
				return answer{allowed: n == 1, remaining: untold, wait: untold}, err
			}
		},
	}
}
