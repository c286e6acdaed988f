package keyfunc_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/keyfunc"
)

// Readers copy examples, so the cache must be correct.
func TestExampleCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queries, fails := map[string]int{}, errors.New("database is down")
		var failure error
		c := newCache(3, time.Minute, func(_ context.Context, key string) (keyfunc.Identity, error) {
			queries[key]++
			if failure != nil {
				return keyfunc.Identity{}, failure
			}
			if key[0] == 'k' {
				return keyfunc.Identity{ID: key}, nil
			}
			return keyfunc.Identity{}, keyfunc.ErrUnknown
		})
		ask := func(key string, queried int, want error) {
			t.Helper()
			id, err := c.find(t.Context(), key)
			if !errors.Is(err, want) || err == nil && id.ID != key || queries[key] != queried {
				t.Errorf("got %+v, %v of %q after %d queries, want %v after %d", id, err, key, queries[key], want, queried)
			}
		}
		failure = fails
		ask("k", 1, fails)
		failure = nil
		ask("k", 2, nil) // failures are not remembered
		ask("k", 2, nil)
		for i := range 100 { // guesses displace no account
			ask(fmt.Sprint("guess", i), 1, keyfunc.ErrUnknown)
		}
		ask("guess99", 1, keyfunc.ErrUnknown)
		ask("k", 2, nil)
		for i := range 100 {
			ask(fmt.Sprint("k", i), 1, nil)
		}
		if len(c.known) != 3 || len(c.unknown) != 3 {
			t.Errorf("got %d known and %d unknown keys, want 3 each", len(c.known), len(c.unknown))
		}
		time.Sleep(time.Minute)
		ask("k99", 2, nil) // expired
	})
}

func TestExampleCacheConcurrently(t *testing.T) {
	c := newCache(2, time.Minute, lookup)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 100 {
				_, _ = c.find(t.Context(), fmt.Sprint("sk_live_", i%4))
			}
		})
	}
	wg.Wait()
}
