// Overrides: what they are, and what they change for a request.

package ratelimit

import (
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// Overrides change limits while the service runs. Package overrides implements them.
type Overrides interface {
	// Find returns the override in force for a key, or for [Everyone], and whether there is one. Many goroutines call it,
	// so it must not wait. overrides/overridestest tests an implementation.
	Find(policy, key string) (Override, bool)
}

// Everyone is the key of an override for all keys of a policy.
const Everyone = "*"

// An Override replaces a policy's limit or mode for one key, for all keys that begin with one part, or for [Everyone].
// The zero Override exempts a key from one for everyone. As JSON:
//
//	{"limit":"60/1m burst 10","mode":"shadow","until":"2026-11-21T12:00:00Z"}
type Override struct {
	// Limit replaces the policy's limit; the zero Limit does not. ModeOff and ModeBanned allow no Limit.
	Limit algorithms.Limit `json:"limit,omitzero"`

	// Mode says how the policy applies.
	Mode Mode `json:"mode,omitzero"`

	// Until is when the override ends; the zero Time means never.
	Until time.Time `json:"until,omitzero"`

	// Since is when it was set. Package overrides writes it.
	Since time.Time `json:"since,omitzero"`

	// By is who set it, in at most 128 bytes.
	By string `json:"by,omitzero"`
}

// A Mode says how a policy applies to the keys of an override. The zero Mode applies it.
type Mode string

const (
	// ModeShadow counts and reports requests, and denies none.
	ModeShadow Mode = "shadow"
	// ModeOff does not count requests.
	ModeOff Mode = "off"
	// ModeBanned denies every request, and counts none.
	ModeBanned Mode = "banned"
)

func (m *Middleware) find(policy, key string) (o Override, found bool) {
	if m.overrides == nil {
		return o, false
	}
	return m.overrides.Find(policy, m.lendable(key))
}

// lendable returns a key for the table of overrides: a foreign one may keep it, so the bytes must not be the request's.
func (m *Middleware) lendable(key string) string {
	if m.lends.overrides {
		return key
	}
	return strings.Clone(key)
}

// ban adds the part of a key that an override bans.
func (q *request) ban(a *part, l *algorithms.Limit, why *reason, until time.Time) {
	if !q.banned { // the part takes the place of all others
		first := &append(q.parts[:0], *a)[0]
		q.banned, q.parts, a = true, q.parts[:0], first
	}
	a.set(l, why)
	a.banned, a.denied = true, algorithms.Never
	if !until.IsZero() {
		a.denied = max(time.Microsecond, time.Until(until))
	}
	q.add(a)
}

// needsNoKey reports whether the policy denies no request. Then it refuses none
// for its key either.
func (m *Middleware) needsNoKey(p *policy) bool {
	o, _ := m.find(p.Name, Everyone) // without one, the zero Override says the same
	mode := p.mode(&o)
	return mode == ModeOff || mode == ModeShadow
}
