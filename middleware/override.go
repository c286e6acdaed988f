// Overrides: what they are, and what they change for a request.

package ratelimit

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// Overrides change limits while the service runs. Package overrides implements them.
type Overrides interface {
	// Find returns the override in force for a key, or for [Everyone], and whether there is one. An override may name a
	// client by the first part of a key; package overrides says which one is in force. Many goroutines call Find, so it
	// must not wait. It must not keep the key, whose bytes are used again.
	Find(policy, key string) (Override, bool)
}

// Everyone is the key of an override for all keys of a policy.
const Everyone = "*"

// An Override replaces a policy's limit or mode for one key, for all keys that begin with one part, or for [Everyone].
// To exempt one key from an override for everyone, set the zero Override for that key. As JSON:
//
//	{"limit":"60/1m burst 10","mode":"shadow","until":"2026-11-21T12:00:00Z"}
type Override struct {
	// Limit replaces the policy's limit; the zero Limit does not. ModeOff and ModeBanned allow no Limit.
	Limit algorithms.Limit `json:"limit,omitzero"`

	// Mode says how the policy applies.
	Mode Mode `json:"mode,omitzero"`

	// Until is when the override ends; the zero Time means never.
	Until time.Time `json:"until,omitzero"`

	// Since is when it was set. Tables of package overrides write it.
	Since time.Time `json:"since,omitzero"`
}

// A Mode says how a policy applies to the keys of an override.
type Mode string

const (
	// ModeOn applies the policy.
	ModeOn Mode = ""
	// ModeShadow counts and reports requests, and denies none.
	ModeShadow Mode = "shadow"
	// ModeOff does not count requests.
	ModeOff Mode = "off"
	// ModeBanned denies every request, and counts none.
	ModeBanned Mode = "banned"
)

// replaces reports whether the override has a limit of its own.
func (o *Override) replaces() bool { return o.Limit != algorithms.Limit{} }

// rule applies the override of the part's key, if there are overrides. It reports false if the limiter
// need not be asked about the part. A ban replaces all other parts.
func (q *request) rule(a *part, tier string) bool {
	o, found := q.m.overrides.Find(a.policy.Name, q.key(a))
	switch {
	case found && o.Mode == ModeBanned && !a.policy.Shadow:
		q.ban(a, tier, o.Until)
		return false
	case q.banned:
		return false
	case !found:
		return true
	case o.Mode == ModeOff:
		return false
	}
	a.override, a.shadow = true, o.Mode == ModeShadow
	if o.replaces() {
		q.replace(a, o.Limit, "an override")
	}
	return true
}

// ban adds the part of a key that an override bans.
func (q *request) ban(a *part, tier string, until time.Time) {
	if !q.banned { // the part takes the place of all others
		first := &append(q.parts[:0], *a)[0]
		q.banned, q.parts, a = true, q.parts[:0], first
	}
	q.choose(a, tier)
	a.banned, a.override, a.denied = true, true, algorithms.Never
	if !until.IsZero() {
		a.denied = max(time.Microsecond, time.Until(until))
	}
	q.add(a)
}

// needsNoKey reports whether the policy denies no request. Then it refuses none
// for its key either.
func (m *Middleware) needsNoKey(p *policy) bool {
	if p.Shadow {
		return true
	}
	if m.overrides == nil {
		return false
	}
	o, found := m.overrides.Find(p.Name, Everyone)
	return found && (o.Mode == ModeOff || o.Mode == ModeShadow)
}
