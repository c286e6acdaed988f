package main

import (
	"net/http"
	"time"
)

const (
	perSecond = 20              // the limit, for both instances together
	offered   = 2 * perSecond   // requests per second that the client sends to them
	patience  = 2 * time.Second // of the client; after it, a request has no answer
)

// A contestant is a limiter in a program.
type contestant struct {
	name   string
	file   string // its program
	handle func(addr string, next http.Handler) (http.Handler, error)
}

var contestants = []contestant{
	{"penstock", "penstock.go", penstock},
	{"redis_rate", "redis_rate.go", redisRate},
	{"ulule/limiter", "ulule.go", ulule},
	{"httprate with Redis", "httprate.go", httpRate},
}

// A plan has the instants of a run.
type plan struct {
	killed, started, healed, end time.Duration
	delay                        time.Duration // of a round trip between started and healed
}

var full = plan{20 * time.Second, 35 * time.Second, 45 * time.Second, 60 * time.Second, 100 * time.Millisecond}

// scaled returns a shorter run. Delays and limits stay, because the limiters' own times do.
func (p plan) scaled(by time.Duration) plan {
	return plan{p.killed / by, p.started / by, p.healed / by, p.end / by, p.delay}
}

// A part of a run is a time in which Redis is in one state.
type part struct {
	name     string
	from, to time.Duration
}

func (p plan) parts() []part {
	return []part{
		{"Redis up", 0, p.killed},
		{"Redis down", p.killed, p.started},
		{"100 ms away", p.started, p.healed},
		{"Redis up again", p.healed, p.end},
	}
}
