package main

import (
	"net/http"
	"time"
)

const (
	perSecond = 20              // the limit, for both instances together
	offered   = 2 * perSecond   // requests per second that the client sends to them
	calm      = 8               // the same while the network stalls: the client keeps the limit
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
	{"penstock, Ahead: 25", "penstock_ahead.go", penstockAhead},
	{"redis_rate", "redis_rate.go", redisRate},
	{"ulule/limiter", "ulule.go", ulule},
	{"httprate with Redis", "httprate.go", httpRate},
}

// A plan has the instants of a run.
type plan struct {
	killed, started, healed, stalls, end time.Duration
	delay                                time.Duration // of a round trip between started and healed
	stall                                time.Duration // of the network, in each second between stalls and end
}

var full = plan{
	killed: 20 * time.Second, started: 35 * time.Second, healed: 45 * time.Second, stalls: 60 * time.Second, end: 80 * time.Second,
	delay: 100 * time.Millisecond, stall: 40 * time.Millisecond,
}

// sends returns when the client sends its requests.
func (p plan) sends() (all []time.Duration) {
	for at := time.Duration(0); at < p.stalls; at += time.Second / offered {
		all = append(all, at)
	}
	for at := p.stalls; at < p.end; at += time.Second / calm {
		all = append(all, at)
	}
	return all
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
		{"Redis up again", p.healed, p.stalls},
		{"stalls of 40 ms", p.stalls, p.end},
	}
}
