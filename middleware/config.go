package middleware

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
)

// A config is what is made of policies. It is immutable: a request is decided
// and answered by one, whatever Update does meanwhile.
type config struct {
	policies  []*policy         // private ones last
	mix       mix               // of all their limits
	challenge string            // of 401
	bodies    map[string][]byte // of 429, by the one policy that denies
	bans      map[string][]byte // the same, if it denies for a ban
}

// Update replaces the policies, as if New had been called with these: requests
// that are being decided go on under the old ones, and those that come after it
// returns are under the new ones. What has been counted stays where a policy
// keeps its name and algorithm. On an error, which names every mistake, the old
// policies stay in force.
//
// It is for changes of the configuration. For one key, or for all instances at
// once, see Options.Overrides.
func (m *Middleware) Update(policies ...Policy) error {
	c, err := newConfig(policies)
	if err != nil {
		return err
	}
	for before := m.config.Load(); ; before = m.config.Load() {
		for _, p := range c.policies {
			if old := before.policy(p.Name); old != nil {
				p.denied = old.denied
			}
		}
		if m.config.CompareAndSwap(before, c) {
			m.meetNeighbours()
			return nil
		}
	}
}

// policy returns the policy of a name, or nil.
func (c *config) policy(name string) *policy {
	for _, p := range c.policies {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func newConfig(policies []Policy) (*config, error) {
	var errs []error
	if len(policies) == 0 {
		errs = append(errs, errors.New("middleware: there are no policies"))
	}
	c := &config{mix: mixOf(policies), bodies: make(map[string][]byte), bans: make(map[string][]byte)}
	names := make(map[string]bool)
	var challenges []string
	for _, p := range policies {
		compiled, err := newPolicy(p)
		if err != nil {
			errs = append(errs, err)
		}
		if names[p.Name] {
			errs = append(errs, fmt.Errorf("middleware: there are two policies %q", p.Name))
		}
		names[p.Name] = true
		c.policies = append(c.policies, compiled)
		if p.Shadow {
			continue
		}
		c.bodies[p.Name], c.bans[p.Name] = headers.QuotaExceeded(p.Name), headers.AbnormalUsage(p.Name)
		for _, challenge := range p.Key.Challenges() {
			if !slices.Contains(challenges, challenge) {
				challenges = append(challenges, challenge)
			}
		}
	}
	errs = append(errs, lines("middleware", c.mix.validate())...)
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	// A 401 must have a challenge (RFC 9110, section 15.5.2). Where identities
	// are verified elsewhere, tokens are the likeliest.
	if c.challenge = strings.Join(challenges, ", "); c.challenge == "" {
		c.challenge = "Bearer"
	}
	// In a Cluster, slots are taken in order: what all clients share comes
	// last, so that a denial elsewhere never touches it; and after all that
	// decide, those that do not.
	slices.SortStableFunc(c.policies, func(a, b *policy) int { return cmp.Compare(a.rank(), b.rank()) })
	return c, nil
}

// body returns the body of an answer. Mostly one policy denies, and what it
// says then has been prepared.
func (c *config) body(v Verdict) []byte {
	capacity := v.Status == http.StatusServiceUnavailable && v.RetryAfter > 0
	if v.Status != http.StatusTooManyRequests && !capacity {
		return headers.Problem(v.Status)
	}
	banned := false
	var room [4]string
	names := room[:0] // of the advertised policies that deny
	for i := range v.Policies {
		p := &v.Policies[i]
		banned = banned || p.Banned
		if !p.Private && !p.Shadow && !p.Decision.Allowed && (p.Banned || p.Decision.Source != algorithms.Undecided) {
			names = append(names, p.Name)
		}
	}
	switch {
	case capacity:
		return headers.ReducedCapacity(names...)
	case banned && len(names) == 1:
		return c.bans[names[0]]
	case banned:
		return headers.AbnormalUsage(names...)
	case len(names) == 1:
		return c.bodies[names[0]]
	default:
		return headers.QuotaExceeded(names...)
	}
}
