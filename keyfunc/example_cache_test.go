package keyfunc_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/penstock-go/penstock/keyfunc"
)

// A cache answers lookups of API keys from memory. Each of its two maps holds
// at most max answers. An answer expires after ttl: so long a revoked key stays
// valid, and a new key unknown.
type cache struct {
	lookup func(ctx context.Context, key string) (keyfunc.Identity, error)
	max    int
	ttl    time.Duration

	mu      sync.Mutex
	known   map[[sha256.Size]byte]answer
	unknown map[[sha256.Size]byte]answer // guesses displace only guesses
}

type answer struct {
	id      keyfunc.Identity
	err     error
	expires time.Time
}

func newCache(limit int, ttl time.Duration, lookup func(context.Context, string) (keyfunc.Identity, error)) *cache {
	return &cache{
		lookup: lookup, max: limit, ttl: ttl,
		known: make(map[[sha256.Size]byte]answer), unknown: make(map[[sha256.Size]byte]answer),
	}
}

// find is the lookup to give to APIKey.
func (c *cache) find(ctx context.Context, key string) (keyfunc.Identity, error) {
	sum := sha256.Sum256([]byte(key)) // of fixed size, and not the secret
	if a, ok := c.get(sum); ok && time.Now().Before(a.expires) {
		return a.id, a.err
	}
	id, err := c.lookup(ctx, key)
	if err == nil || errors.Is(err, keyfunc.ErrUnknown) { // other errors pass
		c.put(sum, answer{id, err, time.Now().Add(c.ttl)})
	}
	return id, err
}

func (c *cache) get(sum [sha256.Size]byte) (answer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.known[sum]
	if !ok {
		a, ok = c.unknown[sum]
	}
	return a, ok
}

func (c *cache) put(sum [sha256.Size]byte, a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, sum)
	delete(c.unknown, sum)
	answers := c.known
	if a.err != nil {
		answers = c.unknown
	}
	for old := range answers { // in no order
		if len(answers) < c.max {
			break
		}
		delete(answers, old)
	}
	answers[sum] = a
}

// A bounded cache in front of the database also remembers unknown keys, so that
// guesses do not reach the database again and again.
func ExampleAPIKey_cache() {
	queries := 0
	database := func(_ context.Context, key string) (keyfunc.Identity, error) {
		queries++
		if key != "sk_live_1" {
			return keyfunc.Identity{}, keyfunc.ErrUnknown
		}
		return keyfunc.Identity{ID: "acme", Tier: "enterprise"}, nil
	}
	client := keyfunc.APIKey("X-API-Key", newCache(10_000, time.Minute, database).find)

	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, key := range []string{"sk_live_1", "sk_live_1", "guess", "guess"} {
		r.Header.Set("X-API-Key", key)
		text, _, err := client.Append(nil, &keyfunc.Request{Request: r})
		fmt.Printf("%q %v\n", text, err)
	}
	fmt.Println(queries, "queries")
	// Output:
	// "usr=acme" <nil>
	// "usr=acme" <nil>
	// "" keyfunc: X-Api-Key: unknown
	// "" keyfunc: X-Api-Key: unknown
	// 2 queries
}
