// Tests of guessers and of the valid keys beside them, in numbers.

package tests

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// TestOffice: one program of an office has an expired key. Another has a valid key, whose quota is 1 000 per day, and is
// served.
func TestOffice(t *testing.T) {
	for _, tt := range []struct {
		name    string
		asks    time.Duration // between requests with the valid key
		every   time.Duration // between requests of the bad program
		keys    int           // that it has; 0: a new one each time
		new     bool          // the valid key changes each time
		served  int           // at least, of 600
		lookups int           // at most, in any second
	}{
		{"One expired key, each second.", time.Minute, time.Second, 1, false, 600, 10},
		{"One expired key, ten times per second.", 5 * time.Second, 100 * time.Millisecond, 1, false, 600, 10},
		{"Sixteen expired keys.", 5 * time.Second, time.Second, 16, false, 600, 10},
		{"A hundred expired keys.", 5 * time.Second, time.Second, 100, false, 600, 10},
		{"A new guess each second, beside valid keys that are new.", 5 * time.Second, time.Second, 0, true, 595, 10},
		{"A flood of guesses.", time.Second, 50 * time.Millisecond, 0, false, 600, 21}, // the allowance, and the valid key
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ring := new(keyring)
				p := ratelimit.Policy{Name: "api", Key: ring.key(), Limit: algorithms.PerDay(1000, time.UTC)}
				h := newMiddleware(t, newMemory(t), guarding(), p).Handler(ok)
				n := 0
				for since := time.Duration(0); since < 600*tt.asks; since += tt.every {
					key := n
					if n++; tt.keys > 0 {
						key %= tt.keys
					}
					record(h, presenting("192.0.2.1", fmt.Sprint("expired", key)))
					if since%tt.asks == 0 {
						key := "valid"
						if tt.new {
							key += fmt.Sprint(since)
						}
						ring.try(h, "192.0.2.1", key)
					}
					time.Sleep(tt.every)
				}
				if got := ring.right.Load(); got < int64(tt.served) || ring.mostPerSecond > tt.lookups {
					t.Errorf("got %d of 600 served and %d look-ups in a second, want %d and %d", got, ring.mostPerSecond, tt.served, tt.lookups)
				}
			})
		})
	}
}

// TestStaleProxySetting: two hundred customers share the address of a proxy that the configuration does not name. One
// client sends five wrong keys per second from the beginning, or a hundred after a second. No customer is refused, and a
// finding says what happens.
func TestStaleProxySetting(t *testing.T) {
	for _, wrong := range []int{5, 100} {
		synctest.Test(t, func(t *testing.T) {
			ring, o := new(keyring), guarding()
			o.ClientIP = keyfunc.IP(&keyfunc.IPOptions{Trusted: prefixes("10.0.0.0/8")})
			p := ratelimit.Policy{Name: "api", Key: ring.key(), Limit: algorithms.TokenBucket(100, time.Minute).WithBurst(10)}
			m := newMiddleware(t, newMemory(t), o, p)
			h := m.Handler(ok)
			for i := range 20 * 200 { // 200 requests per second
				if i%(200/wrong) == 0 && (wrong == 5 || i >= 200) {
					record(h, presenting("172.16.0.1", fmt.Sprint("wrong", i)))
				}
				ring.try(h, "172.16.0.1", fmt.Sprint("valid", i%200))
				time.Sleep(5 * time.Millisecond)
			}
			if got := ring.right.Load(); got != 20*200 {
				t.Errorf("%d wrong keys per second: got %d requests served, want all 4000", wrong, got)
			}
			wantFindings(t, m, "with a stale setting", "PS114 api")
		})
	}
}

// TestGuessBursts: 500 keys at once, every tenth of them valid, every 0.7 s. The client learns at most what ten look-ups
// per second show, after its allowance of 20 and the ten in flight.
func TestGuessBursts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := &keyring{lasts: time.Millisecond}
		p := ratelimit.Policy{Name: "api", Key: ring.key(), Limit: algorithms.TokenBucket(100, time.Minute).WithBurst(10)}
		h := newMiddleware(t, newMemory(t), guarding(), p).Handler(ok)
		for burst := range 9 {
			var wg sync.WaitGroup
			for _, i := range rand.Perm(500) {
				key := fmt.Sprint("wrong", burst, "-", i)
				if i%10 == 0 {
					key = "valid" + key
				}
				wg.Go(func() { ring.try(h, "192.0.2.1", key) })
			}
			wg.Wait()
			time.Sleep(700 * time.Millisecond)
		}
		if got := ring.lookups.Load(); got > 20+2*10+7*10 || ring.most.Load() > 10 || ring.mostPerSecond > 20+2*10 {
			t.Errorf("got %d look-ups, %d at once and %d in a second, want 10 per second after 20, the valid ones among them and 10 in flight", got, ring.most.Load(), ring.mostPerSecond)
		}
		if got := ring.right.Load(); got > 30 { // of 450; the mean is 10
			t.Errorf("got %d valid keys answered 200, want about a tenth of the look-ups", got)
		}
	})
}

// TestGuessLookups: 500 connections of one address try a new key every 0.1 s.
func TestGuessLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := &keyring{lasts: 5 * time.Millisecond}
		p := ratelimit.Policy{Name: "api", Key: ring.key(), Limit: algorithms.TokenBucket(100, time.Minute).WithBurst(10)}
		h := newMiddleware(t, newMemory(t), guarding(), p).Handler(ok)
		var wg sync.WaitGroup
		for connection := range 500 {
			wg.Go(func() {
				for i := range 50 {
					ring.try(h, "192.0.2.1", fmt.Sprint("wrong", connection, "-", i))
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		wg.Wait()
		if got := ring.lookups.Load(); got > 20+9+5*10 || got < 5*10 || ring.most.Load() > 10 {
			t.Errorf("got %d look-ups of 25000 keys in 5 s, %d at once, want at most 79 and 10", got, ring.most.Load())
		}
		if got := ring.wrong.Load(); got != 20 {
			t.Errorf("got %d times 401, want 20 in the first minute", got)
		}
	})
}

// TestNewKeysAtOnce: five hundred programs of an office start together, each with its own valid key. All are served.
func TestNewKeysAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := &keyring{lasts: 5 * time.Millisecond}
		h := newMiddleware(t, newMemory(t), guarding(), ratelimit.Policy{Name: "api", Key: ring.key(), Limit: hourly}).Handler(ok)
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 500 {
			wg.Go(func() {
				if got := ring.try(h, "192.0.2.1", fmt.Sprint("valid", i)); got != http.StatusOK {
					t.Errorf("got status %d, want 200", got)
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); took != 250*time.Millisecond || ring.most.Load() != 10 {
			t.Errorf("got %v for 500 look-ups of 5 ms, %d at once, want 10 at once", took, ring.most.Load())
		}
	})
}

// TestGuessesOfUnknownAddresses: if the address of no client can be found, all of them share ip=unknown. Guesses of one then
// slow no valid key.
func TestGuessesOfUnknownAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring, o := new(keyring), guarding()
		o.ClientIP = keyfunc.IP(&keyfunc.IPOptions{Hops: 2}) // and there is one proxy
		h := newMiddleware(t, newMemory(t), o, ratelimit.Policy{Name: "api", Key: ring.key(), Limit: hourly}).Handler(ok)
		send := func(key string) int {
			r := presenting("10.0.0.1", key)
			r.Header.Set("X-Forwarded-For", "192.0.2.1")
			return record(h, r).Code
		}
		for i := range 100 {
			send(fmt.Sprint("wrong", i))
			if status := send(fmt.Sprint("valid", i)); status != http.StatusOK {
				t.Fatalf("the %d. valid key: got status %d, want 200", i+1, status)
			}
		}
	})
}
