// The clients that a policy denies most.

package ratelimit

import (
	"time"

	"github.com/penstock-go/penstock/middleware/internal/hashed"
)

// An Offender is a key that a policy, or a shadow policy, denies.
type Offender struct {
	// Key shows the kind of each part and eight bytes of the part's SHA-256,
	// e.g. ip=#7a3c5e0d9b1f2a48, unless Options.PlainKeys is set. Routes and
	// constants are plain. To test a suspect: printf ip=192.0.2.1 | sha256sum.
	Key string

	// Plain is the key itself, for programs that act on it. Neither log nor show
	// it: it may name a person.
	Plain string `json:"-"`

	// Denied counts the key's denied requests. It is at most Error too high, 0
	// while few keys are denied.
	Denied, Error uint64

	// Of is Denied of all keys in the same time.
	Of uint64

	// First and Last are its first and last denial since the policy began to count
	// it.
	First, Last time.Time
}

// TopDenied returns up to n keys that a policy denied most within the last ten
// to twenty minutes, the most denied first, or nil. It includes every key with
// more than a 128th of the denials.
func (m *Middleware) TopDenied(policy string, n int) []Offender {
	p := m.config.Load().policy(policy)
	if p == nil {
		return nil
	}
	top, total := p.denied.Top(time.Since(m.made))
	var offenders []Offender
	for _, e := range top[:min(max(0, n), len(top))] {
		offenders = append(offenders, Offender{
			Key: m.show(e.Key), Plain: e.Key, Denied: e.Count, Error: e.Error, Of: total, First: m.made.Add(e.First), Last: m.made.Add(e.Last),
		})
	}
	return offenders
}

// show returns a key as operators see it.
func (m *Middleware) show(key string) string {
	if m.plainKeys {
		return key
	}
	return hashed.Key(key)
}
