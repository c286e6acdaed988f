// The line of a client, whose workers share its limit.
//
// One account may have many workers: agents, jobs, or requests that a page sends at once. With the honest wait alone all of
// them return at one instant, and all but one are denied again. So the denials of a key form a line:
//
//	first denial       instant = honest, where honest = now + wait
//	further denials    instant = max(line + cost/rate, honest), at most honest + maxLater
//	every denial       line = instant
//
// A denial is a further one while now < line, that is, before the last instant that the key was given. A lone client that
// waits as told returns at that instant, and finds its next denial a first one again. It never waits longer than without
// the line.
//
// Example: a limit of 60 per minute, cost 1, is empty at t = 0, and wait is 1 s. Three workers are denied. They return at 1,
// 2 and 3 s, when the first, the second and the third unit have come back. The first one is served at 1 s, sends its next
// call, and is denied: the honest instant is 2 s, the line ends at 3 s, and so this call returns at 4 s.
//
// A client that ignores its wait lengthens its own line only, to at most maxLater. Denials without a place return at the end
// of the line, because all places before it are given to others. Earlier instants would cost their calls attempts.
//
// If even the first place after the honest instant is later than maxLater, the limit is too slow for a line: no request
// could be served at the end of one, and all denials hear the honest wait.
//
// Units of a sliding window may come back sooner, as a burst if they were taken as one. So there no denial returns later than
// the full limit.
//
// Where several instances share the limiter, an instance uses its own line only for what the limiter cannot tell
// (fleet.go), for example while Redis is away.

package comeback

import (
	"maps"
	"sync"
	"time"
)

const (
	// maxLater bounds how much later than its honest wait a denied client returns.
	maxLater = 30 * time.Second

	// maxClients bounds the lines of clients, to about 1 MB. Further clients hear the honest wait. They take no room from
	// the slots of limits that clients share.
	maxClients = 20_000
)

// clients are the lines of clients. The zero value is empty.
type clients struct {
	mu    sync.Mutex // guards the following
	lines map[uint64]line
	swept int64
}

// next returns the instant at which a denied client returns.
func (c *clients) next(p *place) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweep(p.now)
	first := line{at: p.honest, requests: p.limit.Requests()}
	l, found := c.lines[p.line]
	if !found && len(c.lines) >= maxClients || first.plus(p.limit, p.cost).ceil() > p.honest+maxLater.Microseconds() {
		return p.honest
	}
	instant := p.honest
	if p.now < l.at {
		l = l.under(p.limit).further(p)
		instant = l.ceil()
	} else {
		l = first
	}
	if c.lines == nil {
		c.lines = make(map[uint64]line)
	}
	c.lines[p.line] = l
	return instant
}

// further returns the line with a further denial, which returns at its end.
func (l line) further(p *place) line {
	switch moved := l.plus(p.limit, p.cost); {
	case moved.ceil() > p.honest+p.later:
		return line{at: p.honest + p.later, requests: l.requests}
	case moved.at < p.honest:
		return line{at: p.honest, requests: l.requests}
	default:
		return moved
	}
}

// sweep forgets lines that have passed, once a second. It requires the lock.
func (c *clients) sweep(now int64) {
	if now-c.swept < sweepEvery.Microseconds() {
		return
	}
	c.swept = now
	maps.DeleteFunc(c.lines, func(_ uint64, l line) bool { return l.at <= now })
	if len(c.lines) == 0 {
		c.lines = nil // a map does not shrink
	}
}
