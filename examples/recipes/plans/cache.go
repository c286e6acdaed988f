package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/penstock-go/penstock/keyfunc"
)

// A lookup returns the account of an API key.
type lookup func(ctx context.Context, key string) (keyfunc.Identity, error)

// A cache stands before a lookup. It holds at most size known and size unknown keys, so guesses displace only guesses. A
// revoked key stays valid for up to ttl.
type cache struct {
	lookup lookup
	size   int
	ttl    time.Duration

	mu      sync.Mutex
	answers [2]map[[sha256.Size]byte]answer // of known and of unknown keys
}

type answer struct {
	id      keyfunc.Identity
	err     error
	expires time.Time
}

func newCache(size int, ttl time.Duration, l lookup) *cache {
	c := &cache{lookup: l, size: size, ttl: ttl}
	c.answers[0], c.answers[1] = make(map[[sha256.Size]byte]answer), make(map[[sha256.Size]byte]answer)
	return c
}

func (c *cache) find(ctx context.Context, key string) (keyfunc.Identity, error) {
	sum := sha256.Sum256([]byte(key)) // not the secret
	c.mu.Lock()
	a, found := c.answers[0][sum]
	if !found {
		a, found = c.answers[1][sum]
	}
	c.mu.Unlock()
	if found && time.Now().Before(a.expires) {
		return a.id, a.err
	}
	id, err := c.lookup(ctx, key)
	if err == nil || errors.Is(err, keyfunc.ErrUnknown) { // other errors are not remembered
		c.put(sum, answer{id, err, time.Now().Add(c.ttl)})
	}
	return id, err
}

func (c *cache) put(sum [sha256.Size]byte, a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, other := c.answers[0], c.answers[1]
	if a.err != nil {
		kept, other = other, kept
	}
	delete(other, sum)
	for old := range kept { // in no order
		if len(kept) < c.size {
			break
		}
		delete(kept, old)
	}
	kept[sum] = a
}
