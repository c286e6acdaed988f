package main

import "fmt"

// A promise is what a user expects of a limiter, and how to see whether it holds.
type promise struct {
	name     string // in quotes and names of programs
	title    string // in the table
	function string // whose comment the page quotes
	keep     func(t *trial) (verdict, error)
}

// A verdict is the content of a cell.
type verdict struct {
	colour colour
	what   string // what happened
}

type colour string

const (
	green colour = "🟢 kept"
	red   colour = "🔴 broken"
	grey  colour = "⚪ not promised"
)

func kept(format string, args ...any) (verdict, error) {
	return verdict{green, fmt.Sprintf(format, args...)}, nil
}

func broken(format string, args ...any) (verdict, error) {
	return verdict{red, fmt.Sprintf(format, args...)}, nil
}

// promises in the order of the table. The page explains each with the comment of its function.
var promises = []promise{
	{"crowd", "concurrency", "crowd", crowd},
	{"denial", "denials are free", "denial", denial},
	{"several", "all or nothing", "several", several},
	{"remaining", "Remaining", "remaining", remaining},
	{"wait", "Retry-After", "wait", wait},
	{"burst", "cost above the burst", "burst", burst},
	{"expiry", "keys expire", "expiry", expiry},
	{"clock", "clock steps", "clock", clock},
	{"skew", "a late clock", "skew", skew},
	{"instances", "instances", "instances", instances},
	{"outage", "outage: answers", "outageAnswers", outageAnswers},
	{"outage-limit", "outage: limit", "outageLimit", outageLimit},
	{"forged", "forged headers", "forged", forged},
	{"keys", "keys stay apart", "keys", keys},
	{"refund", "refunds", "refund", refund},
}
