// The table of overrides that an instance looks up, immutable and replaced whole.

package overrides

import (
	"hash/maphash"
	"maps"
)

// A table is what is looked up, by many goroutines: it is immutable once they
// can see it.
type table struct {
	policies map[string]*entries
}

// entries are the overrides of one policy. They stand in many small maps, so
// that an edit copies one of them.
type entries struct {
	version  string // of a Redis: what was read
	everyone *Override
	keys     [256]map[string]*Override
	n        int // everyone included
}

var seed = maphash.MakeSeed()

func (e *entries) shard(key string) *map[string]*Override {
	return &e.keys[maphash.String(seed, key)%uint64(len(e.keys))]
}

// get returns the override of exactly this key, live or not; nil if none.
func (e *entries) get(key string) *Override {
	switch {
	case e == nil:
		return nil
	case key == Everyone:
		return e.everyone
	default:
		return (*e.shard(key))[key]
	}
}

// put sets or, if o is nil, clears an override, in entries that nobody else sees.
func (e *entries) put(key string, o *Override) {
	if e.get(key) != nil {
		e.n--
	}
	if o != nil {
		e.n++
	}
	if key == Everyone {
		e.everyone = o
		return
	}
	shard := e.shard(key)
	switch {
	case o == nil:
		delete(*shard, key)
	case *shard == nil:
		*shard = map[string]*Override{key: o}
	default:
		(*shard)[key] = o
	}
}

// with returns a copy in which key has another override, or none if o is nil.
func (e *entries) with(key string, o *Override) *entries {
	var next entries
	if e != nil {
		next = *e
	}
	if key != Everyone {
		shard := next.shard(key)
		*shard = maps.Clone(*shard)
	}
	next.put(key, o)
	return &next
}

// live returns the overrides that have not ended, by key.
func (e *entries) live() map[string]Override {
	all := make(map[string]Override)
	for key, o := range e.all {
		if o.Live() {
			all[key] = *o
		}
	}
	return all
}

// count returns how many overrides have not ended.
func (e *entries) count() (n int) {
	for _, o := range e.all {
		if o.Live() {
			n++
		}
	}
	return n
}

// all yields all overrides, ended ones too.
func (e *entries) all(yield func(string, *Override) bool) {
	if e == nil || e.everyone != nil && !yield(Everyone, e.everyone) {
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

// with returns a copy in which a policy has other entries, or none.
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

// find returns the override in force, nil if none; see the package's
// documentation.
func (t *table) find(policy, key string) *Override {
	if e := t.policies[policy]; e != nil {
		if o := e.get(key); o != nil && o.Live() {
			return o
		}
		if o := e.everyone; o != nil && o.Live() {
			return o
		}
	}
	if e := t.policies[All]; e != nil && e.everyone != nil && e.everyone.Live() {
		return e.everyone
	}
	return nil
}

// size returns how many overrides there are, ended ones too.
func (t *table) size() (n int) {
	for _, e := range t.policies {
		n += e.n
	}
	return n
}
