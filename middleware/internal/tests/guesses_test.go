// Tests of addresses that send unknown API keys.

package tests

import (
	"context"
	"errors"
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

// A keyring knows the API key "valid" of the account 42, and the keys that begin so of accounts of their own. It counts
// look-ups, and how many there are at once and in any second.
type keyring struct {
	lasts                 time.Duration // of a look-up
	lookups, at, most     atomic.Int64
	mu                    sync.Mutex
	began                 []time.Time
	mostPerSecond         int
	wrong, right, refused atomic.Int64 // answers 401, 200 and 429
}

func (k *keyring) key() keyfunc.Key {
	return keyfunc.APIKey("X-API-Key", func(_ context.Context, key string) (keyfunc.Identity, error) {
		k.lookups.Add(1)
		k.begin(time.Now())
		defer k.at.Add(-1)
		time.Sleep(k.lasts)
		switch {
		case key == "valid":
			return keyfunc.Identity{ID: "42"}, nil
		case strings.HasPrefix(key, "valid"):
			return keyfunc.Identity{ID: key}, nil
		default:
			return keyfunc.Identity{}, keyfunc.ErrUnknown
		}
	})
}

func (k *keyring) begin(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.most.Store(max(k.most.Load(), k.at.Add(1)))
	k.began = append(k.began, now)
	for now.Sub(k.began[0]) >= time.Second {
		k.began = k.began[1:]
	}
	k.mostPerSecond = max(k.mostPerSecond, len(k.began))
}

// try sends a request with a key from an address, and counts the answer.
func (k *keyring) try(h http.Handler, ip, key string) int {
	status := record(h, presenting(ip, key)).Code
	switch status {
	case http.StatusOK:
		k.right.Add(1)
	case http.StatusUnauthorized:
		k.wrong.Add(1)
	case http.StatusTooManyRequests:
		k.refused.Add(1)
	}
	return status
}

// guarding are options that name ClientIP, so that the look-ups of addresses are bounded.
func guarding() *ratelimit.Options {
	return &ratelimit.Options{ClientIP: keyfunc.IP(nil), Logger: quiet}
}

// presenting returns a request of the client at ip with an API key.
func presenting(ip, key string) *http.Request { return with(from(ip), "X-API-Key", key) }

// slow sends guesses from ip until its new keys wait for their turns.
func slow(t *testing.T, h http.Handler, ip string) {
	t.Helper()
	for i := range 21 {
		want := 401
		if i == 20 {
			want = 429
		}
		if got := record(h, presenting(ip, fmt.Sprint("guess", i))).Code; got != want {
			t.Fatalf("guess %d: got status %d, want %d", i, got, want)
		}
	}
}

// TestGuessesAreSlowed: an address that has sent 20 unknown keys has ten new keys looked up per second. The others get
// 429 without a look-up, valid or not, and the wait is honest. Keys that were valid before pass.
func TestGuessesAreSlowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := new(keyring)
		h := newMiddleware(t, newMemory(t), guarding(), ratelimit.Policy{Name: "api", Key: ring.key(), Limit: perHour(1000)}).Handler(ok)
		ring.try(h, "192.0.2.1", "valid")
		time.Sleep(time.Second)
		slow(t, h, "192.0.2.1")
		lookups := ring.lookups.Load()
		guess, valid := record(h, presenting("192.0.2.1", "guess")), record(h, presenting("192.0.2.1", "valid-and-new"))
		if guess.Code != 429 || valid.Body.String() != guess.Body.String() || dump(valid.Header()) != dump(guess.Header()) || ring.lookups.Load() != lookups {
			t.Errorf("got\n%s%s of a guess and\n%s%s of a valid key, want them equal, and no look-up", dump(guess.Header()), guess.Body, dump(valid.Header()), valid.Body)
		}
		if got := retryAfter(t, guess.Header()); got < 1 || got > 2 || limits(guess.Header()) != fmt.Sprintf("Retry-After: %d\n", got) {
			t.Errorf("got\n%swant a Retry-After of 1 or 2 s alone", limits(guess.Header()))
		}
		if got := guess.Body.String(); !strings.Contains(got, "abnormal-usage-detected") || !strings.Contains(got, "This address sent unknown API keys") {
			t.Errorf("got the body %s", got)
		}
		for _, want := range []int{401, 401} {
			if got := ring.try(h, "192.0.2.1", "guess3"); got != want || ring.lookups.Load() != lookups {
				t.Errorf("got status %d of a repeated key, want %d without a look-up", got, want)
			}
		}
		if got := ring.try(h, "192.0.2.1", "valid"); got != 200 {
			t.Errorf("got status %d of a key that was valid before, want 200", got)
		}
		time.Sleep(time.Duration(retryAfter(t, guess.Header())) * time.Second)
		if got := ring.try(h, "192.0.2.1", "valid-and-new"); got != 200 {
			t.Errorf("got status %d of a valid key after its Retry-After, want 200", got)
		}
	})
}

// TestGuessesStopNothingElse: other addresses, and requests without an API key, are decided as before.
func TestGuessesStopNothingElse(t *testing.T) {
	ring := new(keyring)
	p := ratelimit.Policy{Name: "api", Key: keyfunc.FirstOf(ring.key(), keyfunc.IP(nil)), Limit: algorithms.TokenBucket(5, time.Hour)}
	open := byIP("open", perHour(1000))
	p.Skip = func(r *http.Request) bool { return r.Header.Get("Open") != "" }
	still := newStill(t)
	m := newMiddleware(t, still, guarding(), p, open)
	h := m.Handler(ok)
	slow(t, h, "192.0.2.1")
	for _, tt := range []struct {
		name   string
		r      *http.Request
		status int
	}{
		{"A valid key from another address is served.", presenting("192.0.2.2", "valid"), 200},
		{"A policy without API keys serves the address.", with(presenting("192.0.2.1", "guess"), "Open", "1"), 200},
		{"A malformed key stays malformed.", presenting("192.0.2.1", "a b"), 400},
		{"Another address may still guess.", presenting("192.0.2.3", "guess"), 401},
		{"Without a key, the address has its own limit.", from("192.0.2.1"), 200},
	} {
		if got := record(h, tt.r); got.Code != tt.status {
			t.Errorf("%s got status %d, want %d", tt.name, got.Code, tt.status)
		}
	}
	if got := left(t, still, p, "ip=192.0.2.1"); got != 4 {
		t.Errorf("got %d left of the address's own limit, want the 4 that guesses do not touch", got)
	}
}

// TestGuessesWithoutClientIP: the peer may be a proxy, so all keys are looked up. Unknown ones get 429 after 20.
func TestGuessesWithoutClientIP(t *testing.T) {
	ring := new(keyring)
	h := newMiddleware(t, newStill(t), nil, ratelimit.Policy{Name: "api", Key: ring.key(), Limit: perHour(1000)}).Handler(ok)
	slow(t, h, "192.0.2.1")
	for i := range 100 {
		if got := record(h, presenting("192.0.2.1", fmt.Sprint("valid", i))).Code; got != 200 {
			t.Errorf("got status %d of a valid key, want 200", got)
		}
	}
}

// TestGuessesUnderAnyPolicy: the answer to guesses is 401, then 429, whatever the policy says.
func TestGuessesUnderAnyPolicy(t *testing.T) {
	for name, edit := range map[string]func(*ratelimit.Policy){
		"A plain policy.":          func(*ratelimit.Policy) {},
		"A hidden policy.":         func(p *ratelimit.Policy) { p.Hidden = true },
		"A policy of capacity.":    func(p *ratelimit.Policy) { p.Capacity = true },
		"A limit of ten hours.":    func(p *ratelimit.Policy) { p.Limit = algorithms.TokenBucket(1, 10*time.Hour) },
		"Nobody.":                  func(p *ratelimit.Policy) { p.Limit = algorithms.Nobody() },
		"A policy that bans.":      func(p *ratelimit.Policy) { p.Ban = &ratelimit.Ban{Denials: 1, Within: time.Hour, For: time.Hour} },
		"A policy with candidate.": func(p *ratelimit.Policy) { p.Candidate = &hourly },
	} {
		synctest.Test(t, func(t *testing.T) {
			p := ratelimit.Policy{Name: "api", Key: new(keyring).key(), Limit: hourly}
			edit(&p)
			h := newMiddleware(t, newMemory(t), guarding(), p).Handler(ok)
			slow(t, h, "192.0.2.1")
			for i := range 5 {
				w := record(h, presenting("192.0.2.1", fmt.Sprint("more", i)))
				if got := retryAfter(t, w.Header()); w.Code != 429 || got < 1 || got > 2 {
					t.Errorf("%s got status %d and Retry-After %d, want 429 and 1 or 2", name, w.Code, got)
				}
			}
		})
	}
}

// TestGuessesAndTheAddressLimit: the policies that need no key are asked and charged beside a guess, in one decision,
// except for what all clients share.
func TestGuessesAndTheAddressLimit(t *testing.T) {
	for _, o := range []*ratelimit.Options{nil, guarding()} {
		ring := new(keyring)
		address := ratelimit.Policy{Name: "address", Limit: algorithms.SlidingWindowLog(10, time.Hour)}
		api := ratelimit.Policy{Name: "api", Key: ring.key(), Limit: perHour(1000)}
		capacity := forAll("capacity", algorithms.TokenBucket(5, time.Hour))
		still := newStill(t)
		h := newMiddleware(t, still, o, address, api, capacity).Handler(ok)
		for i := range 100 {
			w := record(h, presenting("192.0.2.1", fmt.Sprint("guess", i)))
			want := 401
			if i >= 10 {
				want = 429
			}
			if w.Code != want || want == 429 && (retryAfter(t, w.Header()) != 3600 || !strings.Contains(w.Header().Get("RateLimit"), `"address";r=0`)) {
				t.Fatalf("guess %d: got status %d and\n%swant %d, and the wait of the address's limit", i, w.Code, limits(w.Header()), want)
			}
		}
		if got := left(t, still, capacity, "const=all"); got != 5 {
			t.Errorf("got %d left of what all clients share, want all", got)
		}
	}
}

// TestGuessesKeepNothing: what other policies hold or reserve for a guess comes back, because no handler settles it.
func TestGuessesKeepNothing(t *testing.T) {
	memory := newMemory(t)
	streams, fails := byIP("streams", two), byIP("fails", perHour(2))
	fails.ChargeIf = func(int) bool { return true }
	h := newMiddleware(t, memory, nil, streams, fails, ratelimit.Policy{Name: "api", Key: new(keyring).key(), Limit: hourly}).Handler(ok)
	for i := range 10 {
		if got := record(h, presenting("192.0.2.1", fmt.Sprint("guess", i))).Code; got != 401 {
			t.Fatalf("guess %d: got status %d, want 401", i, got)
		}
	}
	for _, p := range []ratelimit.Policy{streams, fails} {
		if got := left(t, memory, p, "ip=192.0.2.1"); got != 2 {
			t.Errorf("%s: got %d left, want all", p.Name, got)
		}
	}
}

// TestGuessesAreSeen: an operator finds the address among the clients that are denied most, and observers see why.
func TestGuessesAreSeen(t *testing.T) {
	ring, seen := new(keyring), new(eventLog)
	o := guarding()
	o.Observers, o.PlainKeys = []ratelimit.Observer{seen}, true
	m := newMiddleware(t, newStill(t), o, ratelimit.Policy{Name: "api", Key: ring.key(), Limit: hourly})
	for i := range 24 {
		_, err := m.Check(presenting("192.0.2.1", fmt.Sprint("guess", i)))
		if errors.Is(err, keyfunc.ErrUnknown) != (i < 20) {
			t.Errorf("guess %d: got error %v, want ErrUnknown of the first 20", i, err)
		}
	}
	if got := m.TopDenied("api", 1); len(got) != 1 || got[0].Key != "ip=192.0.2.1" || got[0].Denied != 4 {
		t.Errorf("got %+v, want 4 denials of the address", got)
	}
	for i, want := range map[int]string{19: "key_error", 23: "denied"} {
		v := seen.of(ratelimit.Decided)[i].Verdict
		if p := v.Policies[0]; p.Outcome.String() != want || !p.Guessed || p.Decision.Source != algorithms.Undecided || v.Degraded {
			t.Errorf("got %+v, want %s, guessed, undecided and not degraded", v, want)
		}
	}
}

// TestGuessesLifted: an override of the address's key lets the address try all keys.
func TestGuessesLifted(t *testing.T) {
	for _, tt := range []struct {
		name         string
		o            ratelimit.Override
		valid, guess int
	}{
		{"Off.", ratelimit.Override{Mode: ratelimit.ModeOff}, 200, 401},
		{"Shadow.", ratelimit.Override{Mode: ratelimit.ModeShadow}, 200, 401},
		{"Banned: the ban answers what is unknown.", ratelimit.Override{Mode: ratelimit.ModeBanned}, 403, 403},
		{"A limit lifts nothing.", ratelimit.Override{Limit: perHour(2)}, 429, 429},
	} {
		ring, table, o := new(keyring), overrides.NewMemory(), guarding()
		o.Overrides = table
		h := newMiddleware(t, newStill(t), o, ratelimit.Policy{Name: "api", Key: ring.key(), Limit: perHour(1000)}).Handler(ok)
		slow(t, h, "192.0.2.1")
		override(t, table, "api", "ip=192.0.2.1", tt.o)
		for i := range 20 {
			if got := ring.try(h, "192.0.2.1", fmt.Sprint("valid", i)); got != tt.valid {
				t.Errorf("%s got status %d of a valid key, want %d", tt.name, got, tt.valid)
			}
			if got := ring.try(h, "192.0.2.1", fmt.Sprint("more", i)); got != tt.guess {
				t.Errorf("%s got status %d of a guess, want %d", tt.name, got, tt.guess)
			}
		}
		if got := ring.try(h, "192.0.2.2", "valid"); got != 200 {
			t.Errorf("%s got status %d of another address, want 200", tt.name, got)
		}
	}
}

// TestGuessesInTheShadow: a shadow policy refuses no address.
func TestGuessesInTheShadow(t *testing.T) {
	ring := new(keyring)
	shadow := ratelimit.Policy{Name: "api", Key: ring.key(), Limit: algorithms.Nobody(), Shadow: true}
	h := newMiddleware(t, newStill(t), guarding(), byIP("open", perHour(1000)), shadow).Handler(ok)
	for i := range 50 {
		if got := ring.try(h, "192.0.2.1", fmt.Sprint("guess", i)); got != 200 {
			t.Errorf("got status %d, want 200", got)
		}
	}
}

// TestGuessersBehindAProxy: ClientIP finds the address, and one client does not slow the others.
func TestGuessersBehindAProxy(t *testing.T) {
	ring, o := new(keyring), guarding()
	o.ClientIP = keyfunc.IP(&keyfunc.IPOptions{Hops: 1})
	h := newMiddleware(t, newStill(t), o, ratelimit.Policy{Name: "api", Key: ring.key(), Limit: hourly}).Handler(ok)
	behind := func(client, key string) int {
		return record(h, with(presenting("10.0.0.1", key), "X-Forwarded-For", client)).Code
	}
	for i := range 20 {
		behind("192.0.2.1", fmt.Sprint("guess", i))
	}
	if got, other := behind("192.0.2.1", "valid"), behind("192.0.2.2", "valid"); got != 429 || other != 200 {
		t.Errorf("got status %d of the guesser and %d of another client, want 429 and 200", got, other)
	}
}

// TestGuessesAtOnce: unknown, valid and failing keys of many addresses at the same time.
func TestGuessesAtOnce(t *testing.T) {
	ring := new(keyring)
	h := newMiddleware(t, newMemory(t), guarding(), ratelimit.Policy{Name: "api", Key: ring.key(), Limit: perHour(1e6)}).Handler(ok)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				ip := fmt.Sprint("192.0.2.", (i+j)%4)
				ring.try(h, ip, fmt.Sprint("guess", i, "-", j))
				ring.try(h, ip, "valid")
			}
		})
	}
	wg.Wait()
	if got := ring.wrong.Load(); got < 4*20 || got > 4*(20+20) { // a unit of the allowance comes back per 3 s
		t.Errorf("got %d times 401, want 20 per address", got)
	}
	if got := ring.right.Load() + ring.wrong.Load() + ring.refused.Load(); got != 2*8*200 {
		t.Errorf("got %d answers, want %d", got, 2*8*200)
	}
}
