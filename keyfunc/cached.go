package keyfunc

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"
)

// Cached returns a lookup for [APIKey] that remembers the answers of lookup for ttl: at most size accounts, and as
// many unknown keys, so guesses displace only guesses. A revoked key stays valid, and a new key may stay unknown, for
// up to ttl. Failures are not remembered. Requests with one key wait for one call of lookup.
//
// Keys are held as SHA-256. If size or ttl is 0 or less, Cached returns lookup itself; a nil lookup is a
// misconfiguration of the APIKey. Cached is safe for concurrent use if lookup is.
func Cached(lookup func(context.Context, string) (Identity, error), size int, ttl time.Duration) func(context.Context, string) (Identity, error) {
	if lookup == nil || size < 1 || ttl <= 0 {
		return lookup
	}
	c := &cache{lookup: lookup, size: size, ttl: ttl, asking: make(map[digest]chan struct{})}
	c.known, c.unknown = make(map[digest]answer), make(map[digest]answer)
	return c.find
}

// A digest is a key that cannot be read back.
type digest [sha256.Size]byte

type cache struct {
	lookup func(context.Context, string) (Identity, error)
	size   int
	ttl    time.Duration

	mu             sync.Mutex
	known, unknown map[digest]answer
	asking         map[digest]chan struct{} // closed when the lookup has returned
}

type answer struct {
	id      Identity
	err     error
	expires time.Time
}

func (c *cache) find(ctx context.Context, key string) (Identity, error) {
	sum := digest(sha256.Sum256([]byte(key)))
	for {
		a, found, other := c.begin(sum)
		if found {
			return a.id, a.err
		}
		if other == nil {
			return c.ask(ctx, key, sum)
		}
		select {
		case <-other:
		case <-ctx.Done():
			return Identity{}, ctx.Err()
		}
	}
}

// begin returns the remembered answer, or the end of the lookup that another request has begun. If there is neither, the
// caller must ask.
func (c *cache) begin(sum digest) (a answer, found bool, other chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a, found = c.known[sum]; !found {
		a, found = c.unknown[sum]
	}
	if found && time.Now().Before(a.expires) {
		return a, true, nil
	}
	if other = c.asking[sum]; other == nil {
		c.asking[sum] = make(chan struct{})
	}
	return answer{}, false, other
}

// ask asks the lookup, and remembers its answer, unless it fails or panics.
func (c *cache) ask(ctx context.Context, key string, sum digest) (Identity, error) {
	a := answer{err: errPanic}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if a.err == nil || errors.Is(a.err, ErrUnknown) {
			c.put(sum, a)
		}
		close(c.asking[sum])
		delete(c.asking, sum)
	}()
	a.id, a.err = c.lookup(ctx, key)
	a.expires = time.Now().Add(c.ttl)
	return a.id, a.err
}

// put remembers an answer. If there is no room, it forgets another one, whichever the map yields. It requires mu.
func (c *cache) put(sum digest, a answer) {
	kept, other := c.known, c.unknown
	if a.err != nil {
		kept, other = other, kept
	}
	delete(other, sum)
	delete(kept, sum)
	for old := range kept {
		if len(kept) < c.size {
			break
		}
		delete(kept, old)
	}
	if a.err != nil {
		a.err = ErrUnknown // the error of the lookup may contain the key
	}
	kept[sum] = a
}
