package middleware

import (
	"errors"
	"net/http"
	"time"
	"unsafe"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/overrides"
)

// Overrides say what holds for a key instead of what its policy says.
// overrides.Memory and overrides.Redis do. They are for what is decided while
// the service runs, and not for what is known before, or holds for many keys
// alike: that is a tier.
type Overrides interface {
	// Find returns the override in force, and whether there is one; for the key
	// overrides.Everyone, what holds for all. It is called from many goroutines
	// for each policy of every request: it must not wait. It must not keep the
	// key, whose bytes are used again.
	Find(policy, key string) (overrides.Override, bool)
}

// A ruling is what an override makes of a policy for one request. The zero
// ruling is none.
type ruling struct {
	found  bool
	off    bool   // the policy is not asked
	shadow bool   // and if it is, it does not deny
	grade  *grade // the limit in force; nil: the policy's
}

// rule looks up the override of the key that stands in d.keys from start. A ban
// takes the place of all checks so far, and of those to come.
func (d *decision) rule(m *Middleware, p *policy, start int) ruling {
	o, found := m.overrides.Find(p.Name, d.key(start, len(d.keys)))
	switch {
	case found && o.Mode == overrides.Banned && !p.Shadow:
		d.ban(p, o.Until, start)
		return ruling{off: true}
	case !found || d.banned || o.Mode == overrides.Off:
		return ruling{off: d.banned || found}
	}
	u := ruling{found: true, shadow: o.Mode == overrides.Shadow}
	if o.Replaces() {
		u.grade = d.replace(m, p, o.Limit)
	}
	return u
}

// replace returns the grade of an override's limit; nil if that does not go
// together with the other limits that the request may meet, overrides' included.
func (d *decision) replace(m *Middleware, p *policy, l algorithms.Limit) *grade {
	all := d.mix
	all.add(l)
	if err := all.validate(); err != nil {
		m.ignored(err)
		return nil
	}
	g := m.gradeFor(p, l)
	if g != nil {
		d.mix = all
	}
	return g
}

func (d *decision) ban(p *policy, until time.Time, start int) {
	if !d.banned {
		d.banned = true
		d.checks, d.asked, d.policies = d.checks[:0], d.asked[:0], 0
	}
	wait := algorithms.Never
	if !until.IsZero() {
		wait = max(time.Microsecond, time.Until(until))
	}
	d.checks = append(d.checks, algorithms.Check{
		Policy: p.Name, Limit: p.base.limit, Decision: algorithms.Decision{RetryAfter: wait},
	})
	d.asked = append(d.asked, asked{policy: p, grade: p.base, override: true, start: start, end: len(d.keys)})
	d.policies++
}

// unasked reports whether a request needs no key for p: a policy that denies
// nobody asks nobody who they are.
func (m *Middleware) unasked(p *policy) bool {
	if p.Shadow {
		return true
	}
	if m.overrides == nil {
		return false
	}
	o, found := m.overrides.Find(p.Name, overrides.Everyone)
	return found && (o.Mode == overrides.Off || o.Mode == overrides.Shadow)
}

// replaceable returns why New would refuse a limit that stands for the policy's.
func (p *policy) replaceable(l algorithms.Limit) error {
	return errors.Join(l.Validate(), validateLate(p.Policy, l))
}

// gradeFor returns the grade of an override's limit; nil, which is that of the
// policy, if the limit is invalid.
func (m *Middleware) gradeFor(p *policy, l algorithms.Limit) *grade {
	// Grades are made once, not per request. There are few limits; if there are
	// many, or some differ by algorithm alone, those of one place replace each
	// other.
	hash := uint64(l.Requests())*0x9E3779B97F4A7C15 + uint64(l.Burst())*0xC2B2AE3D27D4EB4F + uint64(l.Window())*0x165667B19E3779F9
	place := &p.overridden[hash*0x9E3779B97F4A7C15>>58]
	if g := place.Load(); g != nil && g.limit == l {
		return g
	}
	err := p.replaceable(l)
	var g *grade
	if err == nil {
		g, err = newGrade(p.Policy, "", l)
	}
	if err != nil {
		m.ignored(err)
		return nil
	}
	place.Store(g)
	return g
}

// ignored logs why the limit of an override is not in force.
func (m *Middleware) ignored(err error) {
	m.troubles.log("the limit of an override is invalid; the policy's own stays in force", err)
}

// key returns a part of d.keys. No copy: a limiter does not keep the bytes of a
// key, and d.keys stays as it is until d is freed.
func (d *decision) key(start, end int) string {
	return unsafe.String(unsafe.SliceData(d.keys), len(d.keys))[start:end]
}

// grade returns the limit of a request without an override's.
func (m *Middleware) grade(p *policy, r *http.Request) *grade {
	g, tier := p.grade(r)
	if tier != "" && m.observer != nil {
		m.observer.Observe(r.Context(), Event{Kind: UnknownTier, Policy: p.Name, Tier: tier})
	}
	return g
}
