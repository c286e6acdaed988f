// Addresses that guess API keys.

package ratelimit

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	// maxGuesses bounds the remembered addresses, to about 1 MB. If the table
	// is full, the limiter alone denies further addresses.
	maxGuesses = 10_000

	// maxGuessed bounds how long an address is remembered, because many clients
	// may share it. The limiter denies its guesses again afterwards.
	maxGuessed = time.Hour

	// sweepEvery is how often expired addresses are removed. A sweep of a full
	// table takes less than a millisecond.
	sweepEvery = time.Second
)

// guesses remembers the addresses that were denied for unknown keys. Until
// their RetryAfter, this instance refuses every key from them without a lookup.
// Otherwise a client that guesses would see a valid key's 200, and know the
// key. A nil *guesses remembers none.
type guesses struct {
	n     atomic.Int32 // addresses
	mu    sync.Mutex   // guards all below
	all   map[string]guess
	swept time.Duration
}

// A guess is the entry of an address. until is algorithms.Never if waiting
// cannot help.
type guess struct{ until, forget time.Duration }

// add remembers an address for a time. It copies the address.
func (g *guesses) add(address string, wait, now time.Duration) {
	if g == nil || wait <= 0 {
		return
	}
	until := algorithms.Never
	if wait < algorithms.Never-now {
		until = now + wait
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweep(now)
	if g.all == nil {
		g.all = make(map[string]guess)
	}
	if len(g.all) < maxGuesses {
		g.all[strings.Clone(address)] = guess{until: until, forget: now + min(wait, maxGuessed)}
	}
	g.n.Store(int32(len(g.all)))
}

// remove forgets an address.
func (g *guesses) remove(address string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.all, address)
	g.n.Store(int32(len(g.all)))
}

// wait returns how long the request's address is still refused, or 0.
func (g *guesses) wait(q *request) time.Duration {
	if g == nil || g.n.Load() == 0 {
		return 0
	}
	start := len(q.keys)
	keys, _, err := q.m.clientIP.Append(q.keys, &q.http)
	if err != nil {
		return 0
	}
	q.keys = keys
	wait := g.find(q.text(start, len(keys)), time.Since(q.m.made))
	q.keys = keys[:start]
	return wait
}

// find returns how long an address is still refused, or 0; algorithms.Never if
// waiting cannot help.
func (g *guesses) find(address string, now time.Duration) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweep(now)
	switch found, ok := g.all[address]; {
	case !ok || found.forget <= now:
		return 0
	case found.until == algorithms.Never:
		return algorithms.Never
	default:
		return found.until - now
	}
}

// sweep requires the lock.
func (g *guesses) sweep(now time.Duration) {
	if now-g.swept < sweepEvery {
		return
	}
	g.swept = now
	maps.DeleteFunc(g.all, func(_ string, a guess) bool { return a.forget <= now })
	if len(g.all) == 0 {
		g.all = nil // a map does not shrink
	}
	g.n.Store(int32(len(g.all)))
}
