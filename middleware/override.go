package ratelimit

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// Overrides change limits while the service runs: of one key, of all keys of a
// policy, or of everything. overrides.Memory and overrides.Redis implement it.
//
// An override is an exception. A limit that follows from who asks belongs in
// Policy.Tiers or Policy.LimitOf.
type Overrides interface {
	// Find returns the override in force for a key, and whether there is one. For
	// the key [Everyone] it returns the override of all keys of the policy.
	//
	// The middleware calls it from many goroutines, for each policy of every
	// request, so it must not wait. It must not keep the key: its bytes are used
	// again after Find has returned.
	Find(policy, key string) (Override, bool)
}

// Everyone is the key of an override that holds for all keys of a policy. No key of
// package keyfunc equals it.
const Everyone = "*"

// An Override replaces what a policy says for one key, or for [Everyone]. The zero
// Override says that the policy's own limits apply, whatever holds for everyone.
//
// Its JSON is e.g. {"limit":"60/1m burst 10","mode":"shadow","until":"2026-11-21T12:00:00Z"}.
// Zero fields are left out.
type Override struct {
	// Limit replaces the policy's limit. The zero Limit leaves it as it is.
	// ModeOff and ModeBanned allow no Limit.
	Limit algorithms.Limit `json:"limit,omitzero"`

	// Mode says how the policy applies. The zero value is ModeOn.
	Mode Mode `json:"mode,omitzero"`

	// Until is when the override ends. The zero Time means never.
	Until time.Time `json:"until,omitzero"`
}

// A Mode says how a policy applies to the keys of an override. Its value is its
// text.
type Mode string

const (
	// ModeOn applies the policy, with the override's Limit if it has one.
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
