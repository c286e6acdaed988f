// Package guess limits how fast one address can try API keys, and lets the valid keys
// beside a guesser pass.
//
// An address may send 20 keys per minute that turn out to be unknown. Then it is slowed,
// until its allowance is whole again: keys that are new here wait for one of ten turns
// per second to be looked up. A key that turns out to be valid gives its turn back. Two
// kinds of keys are not new:
//
//   - A key that was valid from this address is looked up at once. So guesses do not stop
//     the programs that run beside the guesser.
//   - A key that was unknown stays unknown for ten seconds, without a look-up. So a
//     program with an expired key neither spends the allowance nor takes turns.
//
// Of an address that is not slowed, ten new keys are looked up at once, and further ones
// wait. Otherwise thousands of guesses that arrive together would all be looked up
// before the first of them is known to be wrong.
//
// An open table only counts: all keys are looked up unless they stay unknown. It is for
// addresses that may be a proxy's, behind which many clients are.
//
// A Table keeps seeded hashes of keys, never the keys.
package guess

import (
	"context"
	"hash/maphash"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Allowance is how many unknown keys an address may send per Per before it is slowed.
	Allowance = 20
	Per       = time.Minute

	// Lookups is how many turns per second a slowed address has, and how many new keys of
	// another address are looked up at once.
	Lookups = 10

	// Recheck is how long an unknown key stays unknown without a look-up.
	Recheck = 10 * time.Second

	// maxAddresses bounds the remembered addresses, to about 7 MB. A full table does not
	// slow further addresses, because they may be innocent.
	maxAddresses = 10_000

	// sweepEvery is how often idle addresses are removed. A sweep of a full table takes
	// less than a millisecond.
	sweepEvery = time.Second
)

// A Table remembers the addresses that sent unknown keys, and the keys that were valid.
// It is safe for concurrent use.
type Table struct {
	made  time.Time
	seed  maphash.Seed
	open  bool
	valid memory
	empty atomic.Bool // no address is remembered; false at first

	mu    sync.Mutex // guards all below
	all   map[string]*address
	swept time.Duration
}

// New returns an empty table.
func New(open bool) *Table {
	return &Table{made: time.Now(), seed: maphash.MakeSeed(), open: open, all: make(map[string]*address)}
}

// now returns the time since a second before the table was made. All instants of the
// package count so, and 0 means never.
func (t *Table) now() time.Duration { return time.Since(t.made) + time.Second }

// An attempt is a key from an address, for one of the functions that look keys up.
type attempt struct {
	lookup       any
	address, key string
}

// A Ticket is the answer to one key. If it is Admitted, exactly one of Valid, Unknown and
// Failed must be called after the look-up.
type Ticket struct {
	// Admitted reports whether the key may be looked up. If not, it counts as unknown.
	Admitted bool

	// Wait is the time until the key may be looked up; 0 if it is admitted, or stays
	// unknown.
	Wait time.Duration

	table   *Table
	hash    uint64
	address string
	of      *address // nil: the table does not follow this look-up
	slot    bool     // it has one of the address's places for look-ups at once
	turn    bool     // it has taken a turn
}

// Ask returns the ticket of a key from an address. lookup is comparable and identifies
// the function that looks the key up. Ask waits while the address has as many look-ups as
// it may have at once; if the context ends meanwhile, the key is not admitted. The ticket
// keeps the address.
func (t *Table) Ask(ctx context.Context, from string, lookup any, key string) Ticket {
	k := Ticket{table: t, address: from, hash: maphash.Comparable(t.seed, attempt{lookup, from, key})}
	if t.valid.has(k.hash) || t.open && t.empty.Load() {
		k.Admitted = true
		return k
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open {
		k.Admitted = !t.recalls(&k)
		return k
	}
	if k.of = t.enter(from); k.of == nil {
		k.Admitted = true
		return k
	}
	if !k.judge() {
		t.mu.Unlock()
		select {
		case k.of.flying <- struct{}{}:
			k.slot = true
		case <-ctx.Done():
		}
		t.mu.Lock()
		if !k.judge() && k.slot {
			k.admit(t.now())
		}
	}
	if !k.Admitted {
		k.leave()
	}
	return k
}

// recalls reports whether the key of a ticket stays unknown. It requires the lock.
func (t *Table) recalls(k *Ticket) bool {
	now := t.now()
	t.sweep(now)
	a := t.all[k.address]
	if a == nil || a.find(k.hash) == nil {
		return false
	}
	if a.recall(k.hash, now) {
		return true
	}
	a.users++
	k.of = a
	k.admit(now)
	return false
}

// judge decides about the key, and reports false if only the address's other look-ups
// keep it from being looked up. It requires the lock.
func (k *Ticket) judge() bool {
	now := k.table.now()
	switch a := k.of; {
	case k.table.valid.has(k.hash):
		k.Admitted = true
	case a.recall(k.hash, now):
	case a.slowed(now):
		if k.Wait = a.untilTurn(now); k.Wait == 0 {
			k.admit(now)
		}
	default:
		return false
	}
	return true
}

// admit admits the key in a turn of its address. It requires the lock.
func (k *Ticket) admit(now time.Duration) {
	k.Admitted, k.turn = true, true
	k.of.begin(k.hash, now)
}

// Valid says that the key is valid.
func (k *Ticket) Valid() {
	if !k.table.open {
		k.table.valid.add(k.hash)
	}
	if k.of == nil {
		return
	}
	k.table.mu.Lock()
	defer k.table.mu.Unlock()
	k.of.forget(k.hash)
	if k.turn {
		k.of.giveBack()
	}
	k.leave()
}

// Failed says that the look-up found nothing out.
func (k *Ticket) Failed() {
	if k.of == nil {
		return
	}
	k.table.mu.Lock()
	defer k.table.mu.Unlock()
	k.leave()
}

// Unknown says that the key is unknown. It returns 0, or if the address has spent its
// allowance, the time until one more unknown key is in it.
func (k *Ticket) Unknown() (wait time.Duration) {
	t := k.table
	t.valid.remove(k.hash)
	t.mu.Lock()
	defer t.mu.Unlock()
	if k.of == nil {
		if k.of = t.enter(k.address); k.of == nil {
			return 0
		}
	}
	wait = k.of.charge(k.hash, t.now())
	k.leave()
	return wait
}

// enter returns the entry of an address, which stays in the table until the ticket
// leaves; nil if the table is full. It requires the lock.
func (t *Table) enter(from string) *address {
	now := t.now()
	t.sweep(now)
	a := t.all[from]
	if a == nil {
		if len(t.all) >= maxAddresses {
			return nil
		}
		a = &address{flying: make(chan struct{}, Lookups)}
		t.all[strings.Clone(from)] = a
		t.empty.Store(false)
	}
	a.users, a.used = a.users+1, now
	return a
}

// leave ends the ticket's use of its address. It requires the lock.
func (k *Ticket) leave() {
	a := k.of
	if k.slot {
		<-a.flying
	}
	if a.users--; a.users == 0 && a.whole == 0 {
		delete(k.table.all, k.address) // it has sent no unknown key
	}
	k.of, k.slot = nil, false
}

// sweep removes the addresses that have sent no unknown key for a minute. It requires
// the lock.
func (t *Table) sweep(now time.Duration) {
	if now-t.swept < sweepEvery {
		return
	}
	t.swept = now
	maps.DeleteFunc(t.all, func(_ string, a *address) bool { return a.users == 0 && a.used+Per <= now })
	if len(t.all) == 0 {
		t.all = make(map[string]*address) // a map does not shrink
		t.empty.Store(true)
	}
}

// Slowed reports whether an address is slowed.
func (t *Table) Slowed(from string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.all[from]
	return a != nil && !t.open && a.slowed(t.now())
}

// Count returns how many addresses are slowed.
func (t *Table) Count() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.all {
		if !t.open && a.slowed(t.now()) {
			n++
		}
	}
	return n
}
