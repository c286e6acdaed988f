// The register of policy names: which limits the Middlewares of this process use
// under one name on one limiter. Each name has one entry, so a New costs the same
// however many Middlewares there are.

package ratelimit

import (
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A nameOf is a policy's name on a limiter.
type nameOf struct {
	limiter algorithms.Limiter // comparable
	policy  string
}

// A naming counts the Middlewares that use a name, by the limits of their policies.
type naming struct {
	uses  map[string]int
	since time.Time // since when there are different limits
}

var named struct {
	mu  sync.Mutex // guards all, and the names of each Middleware
	all map[nameOf]*naming
}

// A registration holds the entries of a Middleware in the register. It does not
// keep the Middleware alive, and ends when the Middleware is garbage.
type registration struct {
	ended bool
	names map[nameOf]string // with the limits
}

// registerNames registers the policies in force in place of earlier ones, and
// returns those whose names have different limits from now on.
func (m *Middleware) registerNames() (conflicts []*policy) {
	if !reflect.ValueOf(m.limiter).Comparable() {
		return nil
	}
	if m.doctor.names == nil {
		m.doctor.names = new(registration)
		runtime.AddCleanup(m, (*registration).end, m.doctor.names)
	}
	for _, p := range m.doctor.names.replace(m.limiter, m.config.Load().policies) {
		if _, found := m.nameConflict(p); found {
			conflicts = append(conflicts, p)
		}
	}
	return conflicts
}

func (m *Middleware) unregisterNames() {
	if m.doctor.names != nil {
		m.doctor.names.end()
	}
}

// nameConflict reports whether other Middlewares use the policy's name with other
// limits, and since when.
func (m *Middleware) nameConflict(p *policy) (since time.Time, found bool) {
	if m.doctor.names == nil || p.Shadow {
		return time.Time{}, false
	}
	named.mu.Lock()
	defer named.mu.Unlock()
	if n := named.all[nameOf{m.limiter, p.Name}]; n != nil && len(n.uses) > 1 {
		return n.since, true
	}
	return time.Time{}, false
}

// replace registers the names of policies in place of earlier ones, and returns the
// policies that are new or have other limits than before.
func (r *registration) replace(limiter algorithms.Limiter, policies []*policy) (changed []*policy) {
	named.mu.Lock()
	defer named.mu.Unlock()
	if r.ended {
		return nil
	}
	before := r.names
	r.names = make(map[nameOf]string, len(policies))
	for _, p := range policies {
		if p.Shadow {
			continue // it tries another limit on purpose
		}
		key, limits := nameOf{limiter, p.Name}, p.signature()
		r.names[key] = limits
		if before[key] == limits {
			delete(before, key)
			continue
		}
		use(key, limits)
		changed = append(changed, p)
	}
	release(before)
	return changed
}

// end ends the registration for good.
func (r *registration) end() {
	named.mu.Lock()
	defer named.mu.Unlock()
	r.ended = true
	release(r.names)
	r.names = nil
}

// use counts one more user of a name with these limits. It requires the lock.
func use(key nameOf, limits string) {
	if named.all == nil {
		named.all = make(map[nameOf]*naming)
	}
	n := named.all[key]
	if n == nil {
		n = &naming{uses: make(map[string]int)}
		named.all[key] = n
	}
	if n.uses[limits]++; len(n.uses) > 1 && n.since.IsZero() {
		n.since = time.Now()
	}
}

// release counts one user less of each name. It requires the lock.
func release(names map[nameOf]string) {
	for key, limits := range names {
		n := named.all[key]
		if n.uses[limits]--; n.uses[limits] == 0 {
			delete(n.uses, limits)
		}
		switch len(n.uses) {
		case 0:
			delete(named.all, key)
		case 1:
			n.since = time.Time{}
		}
	}
}

// signature returns the limits of a policy as one text.
func (p *policy) signature() string {
	var b strings.Builder
	fmt.Fprint(&b, p.Limit)
	for _, tier := range slices.Sorted(maps.Keys(p.Tiers)) {
		fmt.Fprintf(&b, "\n%q %v", tier, p.Tiers[tier])
	}
	return b.String()
}
