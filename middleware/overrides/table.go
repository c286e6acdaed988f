// The table of overrides that requests read, without ended ones. It is immutable: an edit replaces it.

package overrides

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// A table holds the overrides of all policies. Many goroutines read it, so it
// never changes once they can see it.
type table struct {
	policies map[string]*entries
}

// entries are the overrides of one policy, in many small maps: an edit copies
// only one of them.
type entries struct {
	version  string // of a Redis: the version that was read
	everyone *ratelimit.Override
	keys     [256]map[string]*ratelimit.Override
	n        int // including the override of everyone
}

// known is the table that requests read. An edit replaces it.
type known struct{ table atomic.Pointer[table] }

// Find implements ratelimit.Overrides, from memory.
func (k *known) Find(policy, key string) (ratelimit.Override, bool) {
	if o := k.table.Load().find(policy, key); o != nil {
		return *o, true
	}
	return ratelimit.Override{}, false
}

// Count returns how many overrides of a policy, as known here, have not ended, by mode.
func (k *known) Count(policy string) map[ratelimit.Mode]int {
	n := make(map[ratelimit.Mode]int)
	for _, o := range k.table.Load().policies[policy].all {
		if live(o) {
			n[o.Mode]++
		}
	}
	return n
}

var seed = maphash.MakeSeed()

// live reports whether the override has not ended.
func live(o *ratelimit.Override) bool { return o.Until.IsZero() || time.Now().Before(o.Until) }

func (e *entries) shard(key string) *map[string]*ratelimit.Override {
	return &e.keys[maphash.String(seed, key)%uint64(len(e.keys))]
}

// get returns the override of exactly this key, even if it has ended; nil if
// none.
func (e *entries) get(key string) *ratelimit.Override {
	switch {
	case e == nil:
		return nil
	case key == ratelimit.Everyone:
		return e.everyone
	default:
		return (*e.shard(key))[key]
	}
}

// put sets an override, or clears it if o is nil. No other goroutine may see e.
func (e *entries) put(key string, o *ratelimit.Override) {
	if e.get(key) != nil {
		e.n--
	}
	if o != nil {
		e.n++
	}
	if key == ratelimit.Everyone {
		e.everyone = o
		return
	}
	shard := e.shard(key)
	switch {
	case o == nil:
		delete(*shard, key)
	case *shard == nil:
		*shard = map[string]*ratelimit.Override{key: o}
	default:
		(*shard)[key] = o
	}
}

// with returns a copy of e in which key has the override o; nil removes it.
func (e *entries) with(key string, o *ratelimit.Override) *entries {
	var next entries
	if e != nil {
		next = *e
	}
	if key != ratelimit.Everyone {
		shard := next.shard(key)
		*shard = maps.Clone(*shard)
	}
	next.put(key, o)
	return &next
}

// all yields all overrides, also ended ones.
func (e *entries) all(yield func(string, *ratelimit.Override) bool) {
	if e == nil || e.everyone != nil && !yield(ratelimit.Everyone, e.everyone) {
		return
	}
	for _, shard := range e.keys {
		for key, o := range shard {
			if !yield(key, o) {
				return
			}
		}
	}
}

// with returns a copy of t in which the policy has the entries e.
func (t *table) with(policy string, e *entries) *table {
	next := &table{policies: maps.Clone(t.policies)}
	if next.policies == nil {
		next.policies = make(map[string]*entries)
	}
	if next.policies[policy] = e; e.n == 0 {
		delete(next.policies, policy)
	}
	return next
}

// find returns the override in force; nil means none. The package comment has the
// precedence.
func (t *table) find(policy, key string) *ratelimit.Override {
	first, _, joined := strings.Cut(key, "|")
	own := t.policies[policy]
	if joined {
		if o := own.get(key); o != nil && live(o) {
			return o
		}
	}
	for _, e := range []*entries{own, t.policies[All]} {
		for _, part := range []string{first, ratelimit.Everyone} {
			if o := e.get(part); o != nil && live(o) {
				return o
			}
		}
	}
	return nil
}

// forgottenAfter is the age at which a ban without an end is most likely forgotten.
const forgottenAfter = 24 * time.Hour

// Findings returns a finding for each policy that has bans without an end that were set more than a day ago.
func (k *known) Findings() (all []algorithms.Finding) {
	for policy, e := range k.table.Load().policies {
		n, first := 0, time.Time{}
		for _, o := range e.all {
			if o.Mode != ratelimit.ModeBanned || !o.Until.IsZero() || o.Since.IsZero() || time.Since(o.Since) < forgottenAfter {
				continue
			}
			if n++; n == 1 || o.Since.Before(first) {
				first = o.Since
			}
		}
		if n == 0 {
			continue
		}
		f := algorithms.Finding{
			Code: "PS301", First: first.Add(forgottenAfter), Policy: policy,
			Sentence: fmt.Sprintf("Bans without an end are in force for more than a day: %d.", n),
			Remedy:   "GET /overrides of the console lists them, and who set them. Lift each with unban, or set it again with an end.",
		}
		if policy == All {
			f.Policy, f.Sentence = "", fmt.Sprintf("Bans in all policies, without an end, are in force for more than a day: %d.", n)
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b algorithms.Finding) int { return cmp.Compare(a.Policy, b.Policy) })
	return all
}
