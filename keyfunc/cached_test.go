package keyfunc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A counted lookup knows the keys that begin with 'k'.
type counted struct {
	mu      sync.Mutex
	queries map[string]int
	failure error
	takes   time.Duration
}

func (c *counted) find(_ context.Context, key string) (Identity, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queries == nil {
		c.queries = map[string]int{}
	}
	c.queries[key]++
	time.Sleep(c.takes)
	switch {
	case c.failure != nil:
		return Identity{}, c.failure
	case key[0] == 'k':
		return Identity{ID: key}, nil
	}
	return Identity{}, fmt.Errorf("no account: %w", ErrUnknown)
}

func TestCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, fails := new(counted), errors.New("database is down")
		c.failure = fails
		find := Cached(c.find, 3, time.Minute)
		ask := func(key string, queried int, want error) {
			t.Helper()
			id, err := find(t.Context(), key)
			if !errors.Is(err, want) || err == nil && id.ID != key || c.queries[key] != queried {
				t.Errorf("got %+v, %v of %q after %d queries, want %v after %d", id, err, key, c.queries[key], want, queried)
			}
		}
		ask("k", 1, fails)
		c.failure = nil
		ask("k", 2, nil) // failures are not remembered
		ask("k", 2, nil)
		for i := range 100 { // guesses displace no account
			ask(fmt.Sprint("guess", i), 1, ErrUnknown)
		}
		ask("guess99", 1, ErrUnknown)
		ask("k", 2, nil)
		for i := range 100 { // the newest is remembered, however many there are
			ask(fmt.Sprint("k", i), 1, nil)
			ask(fmt.Sprint("k", i), 1, nil)
		}
		time.Sleep(time.Minute - 1)
		ask("k99", 1, nil)
		time.Sleep(time.Nanosecond)
		ask("k99", 2, nil)
		c.failure = fails // an expired answer is no answer
		time.Sleep(time.Minute)
		ask("k99", 3, fails)
	})
}

// At most size accounts and as many unknown keys are held.
func TestCachedIsBounded(t *testing.T) {
	c := &cache{lookup: new(counted).find, size: 3, ttl: time.Hour, known: map[digest]answer{}, unknown: map[digest]answer{}, asking: map[digest]chan struct{}{}}
	for i := range 100 {
		_, _ = c.find(t.Context(), fmt.Sprint("k", i))
		_, _ = c.find(t.Context(), fmt.Sprint("guess", i))
	}
	if len(c.known) != 3 || len(c.unknown) != 3 || len(c.asking) != 0 {
		t.Errorf("got %d accounts, %d unknown keys and %d lookups, want 3, 3 and 0", len(c.known), len(c.unknown), len(c.asking))
	}
}

// Requests that come at once with one key ask once. If that fails, or its client hangs up, the others ask for themselves.
func TestCachedAsksOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		failure error
		want    int
	}{"found": {nil, 1}, "failed": {errors.New("down"), 5}} {
		synctest.Test(t, func(t *testing.T) {
			c := &counted{takes: time.Second, failure: tt.failure}
			find := Cached(c.find, 3, time.Minute)
			for range 5 {
				go func() {
					if id, err := find(t.Context(), "k"); !errors.Is(err, tt.failure) || err == nil && id.ID != "k" {
						t.Errorf("%s: got %+v, error %v", name, id, err)
					}
				}()
			}
			ended, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			synctest.Wait()
			if _, err := find(ended, "k"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: a client that hangs up: got error %v", name, err)
			}
			time.Sleep(10 * time.Second)
			synctest.Wait() // the lookups' ends come before the count
			if c.queries["k"] != tt.want {
				t.Errorf("%s: got %d queries, want %d", name, c.queries["k"], tt.want)
			}
		})
	}
}

// A lookup that panics leaves nobody waiting.
func TestCachedSurvivesAPanic(t *testing.T) {
	panics := true
	find := Cached(func(context.Context, string) (Identity, error) {
		if panics {
			panic("bug")
		}
		return Identity{ID: "1"}, nil
	}, 3, time.Minute)
	func() {
		defer func() { _ = recover() }()
		_, _ = find(t.Context(), "k")
	}()
	panics = false
	if id, err := find(t.Context(), "k"); err != nil || id.ID != "1" {
		t.Errorf("got %+v, error %v, want the account", id, err)
	}
}

func TestCachedOfNothing(t *testing.T) {
	if _, err := APIKey("X-API-Key", Cached(nil, 3, time.Minute)).Inspect(); err == nil {
		t.Error("got no misconfiguration of a nil lookup")
	}
	c := new(counted)
	for _, find := range []func(context.Context, string) (Identity, error){Cached(c.find, 0, time.Minute), Cached(c.find, 3, 0)} {
		for range 2 {
			_, _ = find(t.Context(), "k")
		}
	}
	if c.queries["k"] != 4 {
		t.Errorf("got %d queries, want 4: nothing is remembered", c.queries["k"])
	}
}
