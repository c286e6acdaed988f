// Package guess is a table of the addresses that were denied for unknown API keys.
// Package ratelimit refuses their requests, without a lookup, until their RetryAfter.
package guess

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	// maxAddresses bounds the remembered addresses, to about 1 MB. If the table is
	// full, the limiter alone denies further addresses.
	maxAddresses = 10_000

	// maxRemembered bounds how long an address is remembered, because many clients
	// may share it. The limiter denies its guesses again afterwards.
	maxRemembered = time.Hour

	// sweepEvery is how often expired addresses are removed. A sweep of a full
	// table takes less than a millisecond.
	sweepEvery = time.Second
)

// A Table remembers addresses. Instants are durations since one instant that the
// caller chooses. The zero value is empty; a Table is safe for concurrent use.
type Table struct {
	n     atomic.Int32 // addresses
	mu    sync.Mutex   // guards all below
	all   map[string]guess
	swept time.Duration
}

// A guess is the entry of an address. until is algorithms.Never if waiting
// cannot help.
type guess struct{ until, forget time.Duration }

// Empty reports whether the table remembers no address.
func (t *Table) Empty() bool { return t.n.Load() == 0 }

// Add remembers an address for a time. It copies the address.
func (t *Table) Add(address string, wait, now time.Duration) {
	if wait <= 0 {
		return
	}
	until := algorithms.Never
	if wait < algorithms.Never-now {
		until = now + wait
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep(now)
	if t.all == nil {
		t.all = make(map[string]guess)
	}
	if len(t.all) < maxAddresses {
		t.all[strings.Clone(address)] = guess{until: until, forget: now + min(wait, maxRemembered)}
	}
	t.n.Store(int32(len(t.all)))
}

// Remove forgets an address.
func (t *Table) Remove(address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, address)
	t.n.Store(int32(len(t.all)))
}

// Wait returns how long an address is still refused, or 0; algorithms.Never if
// waiting cannot help.
func (t *Table) Wait(address string, now time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep(now)
	switch found, ok := t.all[address]; {
	case !ok || found.forget <= now:
		return 0
	case found.until == algorithms.Never:
		return algorithms.Never
	default:
		return found.until - now
	}
}

// sweep requires the lock.
func (t *Table) sweep(now time.Duration) {
	if now-t.swept < sweepEvery {
		return
	}
	t.swept = now
	maps.DeleteFunc(t.all, func(_ string, a guess) bool { return a.forget <= now })
	if len(t.all) == 0 {
		t.all = nil // a map does not shrink
	}
	t.n.Store(int32(len(t.all)))
}
