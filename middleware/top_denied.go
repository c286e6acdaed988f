// The clients that a policy denies most.

package ratelimit

import (
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/internal/hashed"
)

// An Offender is a key that a policy, or a shadow policy, denies.
type Offender struct {
	// Key shows the kind of each part and eight bytes of the part's SHA-256, e.g. ip=#7a3c5e0d9b1f2a48, unless
	// Options.PlainKeys is set. Routes and constants are plain.
	Key string

	// Plain is the key itself, for programs that act on it. Neither log nor show it: it may name a person.
	Plain string `json:"-"`

	// Denied counts the key's denied requests. It is at most Error too high, 0 while few keys are denied.
	Denied, Error uint64

	// Of is Denied of all keys in the same time.
	Of uint64

	// First is its first denial after an hour without any, as far as the policy has counted it. Last is its last.
	First, Last time.Time

	// Tier is the tier of its last denial, if Policy.Tiers has it.
	Tier string

	// LimitOf is what Policy.LimitOf returned at its last denial, or zero.
	LimitOf algorithms.Limit
}

// TopDenied returns up to n keys that a policy denied most within the last ten to twenty minutes, the most denied
// first, or nil. It includes every key with more than a 128th of the denials. "orders~candidate" is the candidate of
// "orders".
func (m *Middleware) TopDenied(policy string, n int) []Offender {
	policy, candidate := strings.CutSuffix(policy, candidateSuffix)
	p := m.config.Load().policy(policy)
	if p == nil {
		return nil
	}
	tally := p.denied
	if candidate {
		tally = p.wouldDeny
	}
	top, total := tally.Top(time.Since(m.made))
	var offenders []Offender
	for _, e := range top[:min(max(0, n), len(top))] {
		offenders = append(offenders, Offender{
			Key: m.show(e.Key), Plain: e.Key, Denied: e.Count, Error: e.Error, Of: total, First: m.made.Add(e.First), Last: m.made.Add(e.Last),
			Tier: e.Note.Tier, LimitOf: e.Note.LimitOf,
		})
	}
	return offenders
}

// show returns a key as operators see it. It shares no bytes with the key, which may be lent.
func (m *Middleware) show(key string) string {
	if m.plainKeys {
		return strings.Clone(key)
	}
	return hashed.Key(key)
}
