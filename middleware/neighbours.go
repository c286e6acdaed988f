package middleware

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"weak"
)

// inUse are the middlewares of the process that are in use, for the one mistake
// that none of them can see alone: two of them count together.
var inUse struct {
	mu  sync.Mutex // guards all
	all []weak.Pointer[Middleware]
}

// meetNeighbours reports policies whose counts are also another middleware's,
// under other limits. m becomes one of the neighbours.
func (m *Middleware) meetNeighbours() {
	neighbours := m.neighbours()
	for _, p := range m.config.Load().policies {
		if slices.ContainsFunc(neighbours, func(n *Middleware) bool { return p.countsWith(n.config.Load().policy(p.Name)) }) {
			m.find(sharedCount, p)
		}
	}
}

// neighbours returns all others with the same limiter.
func (m *Middleware) neighbours() (others []*Middleware) {
	if !reflect.ValueOf(m.limiter).Comparable() {
		return nil
	}
	inUse.mu.Lock()
	defer inUse.mu.Unlock()
	known := false
	inUse.all = slices.DeleteFunc(inUse.all, func(w weak.Pointer[Middleware]) bool {
		n := w.Value()
		if n == m {
			known = true
		} else if n != nil && n.limiter == m.limiter {
			others = append(others, n)
		}
		return n == nil
	})
	if !known {
		inUse.all = append(inUse.all, weak.Make(m))
	}
	return others
}

// countsWith reports whether two policies of one name share a count, and do not
// agree how much that may be. What shares a place in the store is what has the
// same algorithm.
func (p *policy) countsWith(q *policy) bool {
	if q == nil || p.Shadow != q.Shadow || p.Limit.Algorithm() != q.Limit.Algorithm() {
		return false
	}
	return p.Limit != q.Limit || !maps.Equal(p.Tiers, q.Tiers)
}
