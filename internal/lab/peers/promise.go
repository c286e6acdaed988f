package main

import "fmt"

// A promise is what a user expects of a limiter, and how to see whether it holds.
type promise struct {
	name  string // in quotes, and in the names of package repro
	title string // in the table
	rule  string // on the page
	keep  func(t *trial) verdict

	// alone says that the trial needs a process of its own, because it steps its clock or measures its heap.
	alone bool
}

// A verdict is the content of a cell.
type verdict struct {
	Colour colour
	What   string // what happened
}

type colour string

const (
	green  colour = "🟢 kept"
	red    colour = "🔴 broken"
	grey   colour = "⚪ not promised"
	failed colour = "error" // the trial itself
)

func kept(format string, args ...any) verdict {
	return verdict{green, fmt.Sprintf(format, args...)}
}

func broken(format string, args ...any) verdict {
	return verdict{red, fmt.Sprintf(format, args...)}
}

// promises in the order of the table.
var promises = []promise{
	{name: "crowd", title: "concurrency", keep: crowd, rule: "64 goroutines send 640 requests of one client to one instance, whose limit is 100 per hour. " +
		"Exactly 100 are admitted, and every request has an answer."},
	{name: "denial", title: "denials are free", keep: denial, rule: "14 clients use all of 10 per 4 s. Seven of them send 20 more requests, which are denied. " +
		"After 1 to 9 s each of these seven is admitted as often as its twin that was quiet. Where requests have costs, " +
		"a denied cost of 5 leaves the tenth of ten units to a cost of 1. The tolerance is one request."},
	{name: "remaining", title: "Remaining", keep: remaining, rule: "A new client's first request at 10 per second, 20 per second, 100 per minute and 1000 per hour " +
		"leaves one less than the limit. At 10 per hour the figures count down to 0, and a denial says 0 or nothing."},
	{name: "wait", title: "Retry-After", keep: wait, rule: "In the middle of a window of the clock, and of one that began when the limiter was made, 80 clients use all of " +
		"5 per 10 s, and each reads its Retry-After. Every 250 ms another of them tries again, until one is admitted. That is the true wait. " +
		"Retry-After is not shorter, and at most a second longer where it is in whole seconds. The tolerance is 0.6 s."},
	{name: "burst", title: "cost above the burst", keep: burst, rule: "A new client asks for 11 units at a limit of 10 per hour. " +
		"It is denied without a wait, because no wait helps, and then all of the 10 fit."},
	{name: "expiry", title: "keys expire", keep: expiry, alone: true, rule: "In Redis, 200 clients come once at 10 per second. Every key has an expiry, and after 10 s " +
		"no key is left. In memory, 20 000 clients come once, and every 12 s another 20 000, while one client sends requests all the time. " +
		"The fourth crowd leaves the heap at most three times as large as the first. Limiters are configured to forget early, where they can be."},
	{name: "clock", title: "clock steps", keep: clock, alone: true, rule: "A client uses all of 10 per 4 s. Then the clocks of the program and of redis-server step back an hour. " +
		"Within 8.5 s the client is admitted again, and in 9.5 s at most 44 times. " +
		"The same holds after the clocks were an hour ahead, the client used its limit there, and they were set right."},
	{name: "skew", title: "a late clock", keep: skew, rule: "Four instances share 100 per 10 s, and the clock of one of them is 2 s late. " +
		"Each receives 100 requests of one client, in turn. At most 110 of the 400 are admitted, beside what refills meanwhile."},
	{name: "instances", title: "instances", keep: instances, rule: "The same as concurrency, with four instances that share a redis-server 5 ms away. Each receives 160 of the requests. " +
		"Five clients do so, one after the other, and the limit is 101 per hour, which four do not divide."},
	{name: "forged", title: "forged headers", keep: forged, rule: "One connection sends 40 requests to a limit of 10 per hour for each client address, set up as the " +
		"documentation shows it, without a proxy. Each request has another address in X-Forwarded-For, X-Real-IP, Forwarded, " +
		"True-Client-IP, CF-Connecting-IP and X-Client-IP. Exactly 10 are admitted."},
	{name: "keys", title: "keys stay apart", keep: keys, rule: "Each of 16 clients uses 3 of 10 per hour, and has 7 left. Their names have letters that mean something to a " +
		"store, differ in case, or differ at the end of 300 letters. Where a key may have two parts, \"a:b\" and \"c\" count apart from " +
		"\"a\" and \"b:c\", and so do parts with \"|\", \"/\", \",\" and a space."},
}
