// Tests of addresses that are refused because they guess API keys.

package ratelimit_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// A keyring knows the API key "valid" of the account 42, and counts look-ups.
type keyring struct{ lookups atomic.Int64 }

func (k *keyring) key() keyfunc.Key {
	return keyfunc.APIKey("X-API-Key", func(_ context.Context, key string) (keyfunc.Identity, error) {
		k.lookups.Add(1)
		if key != "valid" {
			return keyfunc.Identity{}, keyfunc.ErrUnknown
		}
		return keyfunc.Identity{ID: "42"}, nil
	})
}

// guarding are options that name ClientIP, so that addresses that guess are refused.
func guarding() *ratelimit.Options {
	return &ratelimit.Options{ClientIP: keyfunc.IP(nil), Logger: quiet}
}

// presenting returns a request of the client at ip with an API key.
func presenting(ip, key string) *http.Request { return with(from(ip), "X-API-Key", key) }

// TestGuessingBlocksValidKeys: until the address's RetryAfter has passed, a valid key gets 429 without a look-up.
func TestGuessingBlocksValidKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring, served := new(keyring), new(counter)
		p := ratelimit.Policy{Name: "api", Key: ring.key(), Limit: algorithms.TokenBucket(2, 2*time.Hour)}
		h := newMiddleware(t, newMemory(t), guarding(), p).Handler(served)
		for i, want := range []int{401, 401, 429} {
			if got := record(h, presenting("192.0.2.1", fmt.Sprint("guess", i))).Code; got != want {
				t.Fatalf("guess %d: got status %d, want %d", i, got, want)
			}
		}
		time.Sleep(20 * time.Minute)
		for _, key := range []string{"valid", "guess"} {
			before := ring.lookups.Load()
			w := record(h, presenting("192.0.2.1", key))
			if w.Code != http.StatusTooManyRequests || ring.lookups.Load() != before {
				t.Errorf("%s: got status %d and %d look-ups, want 429 and none", key, w.Code, ring.lookups.Load()-before)
			}
			if got, want := limits(w.Header()), text(`Ratelimit-Policy: "api";q=2;w=7200`, "Retry-After: 2400"); got != want {
				t.Errorf("%s: got\n%swant\n%s", key, got, want)
			}
		}
		time.Sleep(40*time.Minute - time.Microsecond)
		if got := record(h, presenting("192.0.2.1", "valid")).Code; got != http.StatusTooManyRequests {
			t.Errorf("a microsecond early: got status %d, want 429", got)
		}
		time.Sleep(time.Microsecond)
		if got := record(h, presenting("192.0.2.1", "valid")).Code; got != http.StatusOK || served.n.Load() != 1 {
			t.Errorf("after RetryAfter: got status %d and %d served, want 200 and 1", got, served.n.Load())
		}
	})
}

// TestGuessingBlocksNothingElse: other addresses, and requests without an API key, are decided as before.
func TestGuessingBlocksNothingElse(t *testing.T) {
	ring := new(keyring)
	p := ratelimit.Policy{Name: "api", Key: keyfunc.FirstOf(ring.key(), keyfunc.IP(nil)), Limit: algorithms.TokenBucket(1, time.Hour)}
	open := byIP("open", hourly)
	p.Skip = func(r *http.Request) bool { return r.Header.Get("Open") != "" }
	m := newMiddleware(t, newStill(t), guarding(), p, open)
	h := m.Handler(ok)
	record(h, presenting("192.0.2.1", "guess"))
	if got := record(h, presenting("192.0.2.1", "guess")).Code; got != 429 {
		t.Fatalf("got status %d of the second guess, want 429", got)
	}
	for _, tt := range []struct {
		name   string
		r      *http.Request
		status int
	}{
		{"A valid key from the address is refused.", presenting("192.0.2.1", "valid"), 429},
		{"A valid key from another address is served.", presenting("192.0.2.2", "valid"), 200},
		{"A policy without API keys serves the address.", with(presenting("192.0.2.1", "valid"), "Open", "1"), 200},
		{"A malformed key stays malformed.", presenting("192.0.2.1", "a b"), 400},
		{"Another address may still guess.", presenting("192.0.2.3", "guess"), 401},
	} {
		if got := record(h, tt.r); got.Code != tt.status {
			t.Errorf("%s got status %d, want %d", tt.name, got.Code, tt.status)
		}
	}
	v, err := m.Check(from("192.0.2.1")) // the limiter decides: the guesses have used up the address's bucket
	if err != nil || v.Source() != algorithms.Local {
		t.Errorf("without a key: got source %v and error %v, want a decision of the limiter", v.Source(), err)
	}
}

// TestGuessingWithoutClientIP: no address is remembered, because the peer may be a proxy.
func TestGuessingWithoutClientIP(t *testing.T) {
	ring := new(keyring)
	h := newMiddleware(t, newStill(t), nil, ratelimit.Policy{Name: "api", Key: ring.key(), Limit: algorithms.TokenBucket(1, time.Hour)}).Handler(ok)
	for range 3 {
		record(h, presenting("192.0.2.1", "guess"))
	}
	if got := record(h, presenting("192.0.2.1", "valid")).Code; got != 200 || ring.lookups.Load() != 4 {
		t.Errorf("got status %d and %d look-ups, want 200 and 4", got, ring.lookups.Load())
	}
}

// TestGuessingUnderAnyPolicy: the answer to guesses is 401, then 429, whatever else the policy says.
func TestGuessingUnderAnyPolicy(t *testing.T) {
	for _, tt := range []struct {
		name  string
		limit algorithms.Limit
		edit  func(*ratelimit.Policy)
		wait  int // of the first denial; -1: none, because the limit is Nobody
	}{
		{"A plain policy.", algorithms.TokenBucket(1, time.Hour), func(*ratelimit.Policy) {}, 3600},
		{"A hidden policy.", algorithms.TokenBucket(1, time.Hour), func(p *ratelimit.Policy) { p.Hidden = true }, 3630},
		{"A policy of capacity: the client is to blame, not the service.", algorithms.TokenBucket(1, time.Hour),
			func(p *ratelimit.Policy) { p.Capacity = true }, 3630},
		{"A limit of ten hours.", algorithms.TokenBucket(1, 10*time.Hour), func(*ratelimit.Policy) {}, 36_000},
		{"Nobody: waiting does not help.", algorithms.Nobody(), func(*ratelimit.Policy) {}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ring := new(keyring)
				p := ratelimit.Policy{Name: "api", Key: ring.key(), Limit: tt.limit}
				tt.edit(&p)
				h := newMiddleware(t, newMemory(t), guarding(), p).Handler(ok)
				first := record(h, presenting("192.0.2.1", "guess"))
				if tt.limit != algorithms.Nobody() {
					if first.Code != 401 {
						t.Fatalf("got status %d of the first guess, want 401", first.Code)
					}
					first = record(h, presenting("192.0.2.1", "guess"))
				}
				lookups := ring.lookups.Load()
				again := record(h, presenting("192.0.2.1", "valid"))
				denied := 429
				if tt.wait < 0 {
					denied = 403
				}
				if first.Code != denied || again.Code != denied || ring.lookups.Load() != lookups {
					t.Errorf("got statuses %d and %d and %d look-ups, want %d twice and none", first.Code, again.Code, ring.lookups.Load()-lookups, denied)
				}
				for _, h := range []http.Header{first.Header(), again.Header()} {
					if got := retryAfter(t, h); got > tt.wait || got < tt.wait-30 || tt.wait < 0 && got >= 0 {
						t.Errorf("got Retry-After %d, want %d or a little less", got, tt.wait)
					}
				}
			})
		})
	}
}

// TestGuessingIsSeen: an operator finds the address among the clients that are denied most.
func TestGuessingIsSeen(t *testing.T) {
	ring, seen := new(keyring), new(eventLog)
	o := guarding()
	o.Observers, o.PlainKeys = []ratelimit.Observer{seen}, true
	m := newMiddleware(t, newStill(t), o, ratelimit.Policy{Name: "api", Key: ring.key(), Limit: algorithms.TokenBucket(1, time.Hour)})
	for range 5 {
		_, _ = m.Check(presenting("192.0.2.1", "guess"))
	}
	if got := m.TopDenied("api", 1); len(got) != 1 || got[0].Key != "ip=192.0.2.1" || got[0].Denied != 4 {
		t.Errorf("got %+v, want 4 denials of the address", got)
	}
	last := seen.of(ratelimit.Decided)[4].Verdict
	if p := last.Policies[0]; p.Outcome.String() != "denied" || p.Decision.Source != algorithms.Undecided || last.Degraded {
		t.Errorf("got %+v, want denied, undecided and not degraded", last)
	}
}

// TestGuessingLifted: an override of the address's key ends the refusal, and valid keys are valid again.
func TestGuessingLifted(t *testing.T) {
	for _, tt := range []struct {
		name  string
		o     ratelimit.Override
		valid int
		guess int
	}{
		{"Off: the address is not counted.", ratelimit.Override{Mode: ratelimit.ModeOff}, 200, 401},
		{"Shadow: the address is denied nothing.", ratelimit.Override{Mode: ratelimit.ModeShadow}, 200, 401},
		{"Banned: the ban answers.", ratelimit.Override{Mode: ratelimit.ModeBanned}, 429, 429},
		{"An equal limit lifts nothing.", ratelimit.Override{Limit: perHour(2)}, 429, 429},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ring, table, o := new(keyring), overrides.NewMemory(), guarding()
			o.Overrides = table
			h := newMiddleware(t, newStill(t), o, ratelimit.Policy{Name: "api", Key: ring.key(), Limit: perHour(2)}).Handler(ok)
			for range 3 {
				record(h, presenting("192.0.2.1", "guess"))
			}
			override(t, table, "api", "ip=192.0.2.1", tt.o)
			if got := record(h, presenting("192.0.2.1", "valid")).Code; got != tt.valid {
				t.Errorf("got status %d of the valid key, want %d", got, tt.valid)
			}
			if got := record(h, presenting("192.0.2.1", "guess")).Code; got != tt.guess {
				t.Errorf("got status %d of a guess, want %d", got, tt.guess)
			}
			if err := table.Clear(t.Context(), "api", "ip=192.0.2.1"); err != nil {
				t.Fatal(err)
			}
			after := map[bool]int{true: 200, false: 429}[tt.valid == 200]
			if got := record(h, presenting("192.0.2.1", "valid")).Code; got != after {
				t.Errorf("got status %d of the valid key after the override, want %d", got, after)
			}
		})
	}
}

// TestGuessingInTheShadow: a shadow policy refuses no address.
func TestGuessingInTheShadow(t *testing.T) {
	ring := new(keyring)
	shadow := ratelimit.Policy{Name: "api", Key: ring.key(), Limit: algorithms.Nobody(), Shadow: true}
	h := newMiddleware(t, newStill(t), guarding(), byIP("open", hourly), shadow).Handler(ok)
	for range 3 {
		if got := record(h, presenting("192.0.2.1", "guess")).Code; got != 200 {
			t.Errorf("got status %d, want 200", got)
		}
	}
	if got := ring.lookups.Load(); got != 3 {
		t.Errorf("got %d look-ups, want 3", got)
	}
}

// TestGuessersBehindAProxy: ClientIP finds the address, and one client does not lock out the others.
func TestGuessersBehindAProxy(t *testing.T) {
	ring, o := new(keyring), guarding()
	o.ClientIP = keyfunc.IP(&keyfunc.IPOptions{Hops: 1})
	h := newMiddleware(t, newStill(t), o, ratelimit.Policy{Name: "api", Key: ring.key(), Limit: algorithms.TokenBucket(1, time.Hour)}).Handler(ok)
	behind := func(client, key string) *http.Request {
		return with(presenting("10.0.0.1", key), "X-Forwarded-For", client)
	}
	for range 2 {
		record(h, behind("192.0.2.1", "guess"))
	}
	if got, other := record(h, behind("192.0.2.1", "valid")).Code, record(h, behind("192.0.2.2", "valid")).Code; got != 429 || other != 200 {
		t.Errorf("got status %d of the guesser and %d of another client, want 429 and 200", got, other)
	}
}

// TestGuessingAtOnce: guesses and valid keys of many addresses at the same time.
func TestGuessingAtOnce(t *testing.T) {
	ring := new(keyring)
	h := newMiddleware(t, newStill(t), guarding(), ratelimit.Policy{Name: "api", Key: ring.key(), Limit: algorithms.TokenBucket(100, time.Hour)}).Handler(ok)
	var wg sync.WaitGroup
	var statuses [600]atomic.Int64
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				statuses[record(h, presenting(fmt.Sprint("192.0.2.", (i+j)%4), "guess")).Code].Add(1)
			}
		})
	}
	wg.Wait()
	if got, refused := statuses[401].Load(), statuses[429].Load(); got != 400 || refused != 1200 {
		t.Errorf("got %d times 401 and %d times 429, want 400 and 1200", got, refused)
	}
	if lookups := ring.lookups.Load(); lookups < 404 || lookups > 404+7*4 {
		t.Errorf("got %d look-ups, want one for each admitted guess, the first denied one, and few in flight", lookups)
	}
}

// TestGuessingIsAnswered: the body names no reason that a client could learn from.
func TestGuessingIsAnswered(t *testing.T) {
	ring := new(keyring)
	h := newMiddleware(t, newStill(t), guarding(), ratelimit.Policy{Name: "api", Key: ring.key(), Limit: algorithms.TokenBucket(1, time.Hour)}).Handler(ok)
	for range 2 {
		record(h, presenting("192.0.2.1", "guess"))
	}
	valid, guess := record(h, presenting("192.0.2.1", "valid")), record(h, presenting("192.0.2.1", "guess"))
	if valid.Body.String() != guess.Body.String() || dump(valid.Header()) != dump(guess.Header()) || valid.Code != guess.Code {
		t.Errorf("got\n%s%s of the valid key and\n%s%s of a guess, want them equal", dump(valid.Header()), valid.Body, dump(guess.Header()), guess.Body)
	}
	if !strings.Contains(valid.Body.String(), "quota-exceeded") {
		t.Errorf("got %s, want quota-exceeded", valid.Body)
	}
}
