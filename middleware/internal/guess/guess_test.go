package guess

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

const here = "ip=192.0.2.1"

// A result is what a look-up finds out.
type result int

const (
	unknown result = iota
	valid
	failed
)

// try asks for a key, and ends the ticket with a result after a time.
func (t *Table) try(from, key string, r result, lasts time.Duration) (k Ticket, wait time.Duration) {
	k = t.Ask(context.Background(), from, 1, key)
	if !k.Admitted {
		return k, k.Wait
	}
	time.Sleep(lasts)
	switch r {
	case valid:
		k.Valid()
	case failed:
		k.Failed()
	default:
		wait = k.Unknown()
	}
	return k, wait
}

// slow spends the allowance of an address at once.
func (t *Table) slow(test *testing.T, from string) {
	test.Helper()
	for i := range Allowance {
		if k, wait := t.try(from, fmt.Sprint("slow", i), unknown, 0); !k.Admitted || wait != 0 {
			test.Fatalf("unknown key %d: got admitted %t and wait %v, want it within the allowance", i, k.Admitted, wait)
		}
	}
	if !t.Slowed(from) || t.Count() != 1 {
		test.Fatalf("got slowed %t and %d addresses, want it alone", t.Slowed(from), t.Count())
	}
}

// TestAllowance: an address is slowed by its 20th unknown key within a minute, and until the allowance is whole again.
func TestAllowance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(false)
		g.slow(t, here)
		time.Sleep(2 * time.Second)
		if _, wait := g.try(here, "one more", unknown, 0); wait != time.Second {
			t.Errorf("got wait %v of the 21st key after 2 s, want the second until the allowance has a unit", wait)
		}
		time.Sleep(Per - time.Nanosecond)
		if !g.Slowed(here) {
			t.Error("got an address that is not slowed a nanosecond early")
		}
		time.Sleep(time.Nanosecond)
		if g.Slowed(here) || g.Count() != 0 {
			t.Error("got a slowed address, although its allowance is whole")
		}
	})
}

// TestSlowedAddress: ten new keys are looked up per second, or a little fewer, and the told wait is exact. Valid keys do
// not count.
func TestSlowedAddress(t *testing.T) {
	for _, r := range []result{unknown, failed} {
		synctest.Test(t, func(t *testing.T) {
			g := New(false)
			g.slow(t, here)
			time.Sleep(time.Second + maxJitter)
			for i := range 100 {
				if k, _ := g.try(here, fmt.Sprint("valid", i), valid, 0); !k.Admitted {
					t.Errorf("got wait %v of a valid key, want it looked up", k.Wait)
				}
			}
			for i := range 3 * Lookups {
				if i > 0 && i%Lookups == 0 {
					k, _ := g.try(here, fmt.Sprint("early", i), r, 0)
					if k.Admitted || k.Wait < time.Second || k.Wait >= time.Second+maxJitter {
						t.Errorf("key %d: got admitted %t and wait %v, want a second or a little more", i, k.Admitted, k.Wait)
					}
					time.Sleep(k.Wait - time.Nanosecond)
					if k, _ := g.try(here, fmt.Sprint("early", i), r, 0); k.Admitted || k.Wait != time.Nanosecond {
						t.Errorf("key %d: got admitted %t and wait %v a nanosecond early", i, k.Admitted, k.Wait)
					}
					time.Sleep(time.Nanosecond)
					if k, _ := g.try(here, fmt.Sprint("at", i), r, 0); !k.Admitted {
						t.Errorf("key %d: got wait %v at the end of the told wait", i, k.Wait)
					}
					time.Sleep(time.Second + maxJitter)
				}
				if k, _ := g.try(here, fmt.Sprint("new", i), r, 0); !k.Admitted {
					t.Errorf("key %d: got wait %v, want a turn", i, k.Wait)
				}
			}
			if k, _ := g.try("ip=192.0.2.2", "new", r, 0); !k.Admitted {
				t.Error("got a slowed neighbour")
			}
		})
	}
}

// TestValidKeysPass: a key that was valid from an address is looked up at once, before and after the address is slowed,
// for this address and lookup only, and until it is unknown.
func TestValidKeysPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(false)
		g.try(here, "before", valid, 0)
		g.slow(t, here)
		time.Sleep(time.Second + maxJitter)
		g.try(here, "after", valid, 0)
		for i := range Lookups {
			g.try(here, fmt.Sprint("flood", i), unknown, 0)
		}
		for _, key := range []string{"before", "after", "before"} {
			if k, _ := g.try(here, key, valid, 0); !k.Admitted {
				t.Errorf("%s: got wait %v, want it looked up", key, k.Wait)
			}
		}
		if k := g.Ask(t.Context(), here, 2, "before"); k.Admitted {
			t.Error("got a key admitted that was valid for another lookup")
		}
		g.try(here, "before", unknown, 0) // it was revoked
		if k, wait := g.try(here, "before", unknown, 0); k.Admitted || wait != 0 {
			t.Errorf("got admitted %t and wait %v of a revoked key, want it unknown", k.Admitted, wait)
		}
	})
}

// TestRepeatedKeys: an unknown key costs the allowance once, and is looked up every ten seconds, however often it comes.
// As many as are remembered slow no address.
func TestRepeatedKeys(t *testing.T) {
	for _, open := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g, lookups := New(open), 0
			for range 100 * 60 {
				for key := range maxWrong {
					k, wait := g.try(here, fmt.Sprint("expired", key), unknown, 0)
					if k.Admitted {
						lookups++
					}
					if wait != 0 {
						t.Fatalf("got wait %v, want none", wait)
					}
				}
				time.Sleep(100 * time.Millisecond)
			}
			if g.Slowed(here) || lookups != 60*maxWrong {
				t.Errorf("got slowed %t and %d look-ups in ten minutes, want %d", g.Slowed(here), lookups, 60*maxWrong)
			}
		})
	}
}

// TestBusyWrongKeyStays: of many unknown keys, an address remembers the busiest.
func TestBusyWrongKeyStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(true)
		for i := range 10 * maxWrong {
			if k, _ := g.try(here, "busy", unknown, 0); k.Admitted != (i == 0) {
				t.Fatalf("round %d: got admitted %t of the busy key", i, k.Admitted)
			}
			g.try(here, fmt.Sprint("other", i), unknown, 0)
			time.Sleep(time.Millisecond)
		}
		if n := len(g.all[here].wrong); n != maxWrong {
			t.Errorf("got %d remembered keys, want %d", n, maxWrong)
		}
	})
}

// TestCreatedKey: a key that was unknown and is valid now passes, from the next look-up on.
func TestCreatedKey(t *testing.T) {
	for _, open := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := New(open)
			g.try(here, "new", unknown, 0)
			time.Sleep(Recheck - time.Nanosecond)
			if k, _ := g.try(here, "new", valid, 0); k.Admitted {
				t.Error("got a look-up within ten seconds")
			}
			time.Sleep(time.Nanosecond)
			for range 3 {
				if k, _ := g.try(here, "new", valid, 0); !k.Admitted {
					t.Error("got an unknown key, although the last look-up found it")
				}
			}
		})
	}
}

// TestLookupsAtOnce: of keys that come together, ten are looked up at once. The others wait; valid keys all pass, and
// of guesses no more than the allowance and the ten in flight are looked up.
func TestLookupsAtOnce(t *testing.T) {
	for _, tt := range []struct {
		of      result
		lookups int64
	}{{valid, 500}, {failed, 500}, {unknown, Allowance + Lookups - 1}} {
		synctest.Test(t, func(t *testing.T) {
			g := New(false)
			var lookups, now, most atomic.Int64
			var wg sync.WaitGroup
			for i := range 500 {
				wg.Go(func() {
					k := g.Ask(context.Background(), here, 1, fmt.Sprint(i))
					if !k.Admitted {
						return
					}
					lookups.Add(1)
					for n := now.Add(1); n > most.Load(); most.Store(n) {
					}
					time.Sleep(5 * time.Millisecond)
					now.Add(-1)
					switch tt.of {
					case valid:
						k.Valid()
					case failed:
						k.Failed()
					default:
						k.Unknown()
					}
				})
			}
			wg.Wait()
			if got := lookups.Load(); got > tt.lookups || tt.of != unknown && got < tt.lookups || got < Allowance || most.Load() > Lookups {
				t.Errorf("got %d look-ups, at most %d at once, want %d and %d", got, most.Load(), tt.lookups, Lookups)
			}
			if tt.of != unknown && len(g.all) != 0 {
				t.Errorf("got %d addresses, want none, because none sent an unknown key", len(g.all))
			}
		})
	}
}

// TestHangUp: a key whose request ends while it waits is not looked up, and takes no place.
func TestHangUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(false)
		var running []Ticket
		for i := range Lookups {
			running = append(running, g.Ask(t.Context(), here, 1, fmt.Sprint(i)))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if k := g.Ask(ctx, here, 1, "waits"); k.Admitted || ctx.Err() == nil {
			t.Errorf("got admitted %t before its request ended: %v", k.Admitted, ctx.Err())
		}
		for i := range running {
			running[i].Failed()
		}
		if len(g.all) != 0 {
			t.Errorf("got %d addresses at the end, want none", len(g.all))
		}
	})
}

// TestOpenTable: it looks up every key that does not stay unknown, and tells the wait of unknown ones.
func TestOpenTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(true)
		for i := range 10 * Allowance {
			k, wait := g.try(here, fmt.Sprint(i), unknown, 0)
			if !k.Admitted || (wait > 0) != (i >= Allowance) {
				t.Fatalf("unknown key %d: got admitted %t and wait %v", i, k.Admitted, wait)
			}
		}
		if k, _ := g.try(here, "valid", valid, 0); !k.Admitted || g.Slowed(here) || g.Count() != 0 {
			t.Error("got a slowed address, want none in an open table")
		}
	})
}

// TestAddressesAreBounded: a full table slows no further address until others expire, and a table without addresses is
// no memory.
func TestAddressesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(false)
		for i := range 2 * maxAddresses {
			g.try(fmt.Sprint("a", i), "k", unknown, 0)
		}
		if len(g.all) != maxAddresses {
			t.Fatalf("got %d addresses, want %d", len(g.all), maxAddresses)
		}
		for i := range 2 * Allowance {
			if k, wait := g.try("late", fmt.Sprint(i), unknown, 0); !k.Admitted || wait != 0 {
				t.Fatalf("got admitted %t and wait %v of an address that found no room", k.Admitted, wait)
			}
		}
		time.Sleep(Per)
		g.slow(t, "late")
		time.Sleep(2 * Per)
		if k, _ := g.try("other", "k", valid, 0); !k.Admitted || len(g.all) != 0 {
			t.Errorf("got %d addresses after all had expired, want none", len(g.all))
		}
	})
}

// TestSweepsSeldom: a flood of guesses from many addresses does not walk the full table each time.
func TestSweepsSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(false)
		for i := range 99 {
			g.try(fmt.Sprint("a", i), "k", unknown, time.Millisecond)
		}
		if g.swept != sweepEvery {
			t.Errorf("got a sweep at %v, want none within a second after the first", g.swept)
		}
	})
}

// TestAddressesAreCopied: the bytes of an address are the request's, which uses them again.
func TestAddressesAreCopied(t *testing.T) {
	g, bytes := New(false), []byte(here)
	for i := range Allowance {
		g.try(unsafe.String(&bytes[0], len(bytes)), fmt.Sprint(i), unknown, 0)
	}
	copy(bytes, "ip=192.0.2.9")
	if !g.Slowed(here) || g.Slowed("ip=192.0.2.9") {
		t.Error("got an address that changed with the request's bytes")
	}
}

// TestMemory: it has the newest eight hashes of a set, each once, and frees the place of a removed one.
func TestMemory(t *testing.T) {
	m := new(memory)
	if m.remove(1); m.has(1) {
		t.Error("got a hash in an empty memory")
	}
	for i := range uint64(ways + 1) {
		for range 2 {
			m.add(1 + i*sets)
		}
	}
	for i := range uint64(ways + 1) {
		if got := m.has(1 + i*sets); got != (i > 0) {
			t.Errorf("got hash %d: %t, want all except the oldest", i, got)
		}
	}
	if m.remove(1 + sets); m.has(1+sets) || !m.has(1+2*sets) {
		t.Error("got another hash removed")
	}
}
