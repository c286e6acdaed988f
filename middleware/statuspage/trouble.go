// What is wrong now: the badge of the page.

package statuspage

import (
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// A trouble is a state that operators should know.
type trouble struct {
	Class string    `json:"class"` // bad or warn
	Text  string    `json:"text"`
	Since time.Time `json:"since"`

	id string // of the same trouble at the next look
}

// troubles returns the present troubles, the worst first. It sets Since where the
// instant is known.
func (v *view) troubles() (all []trouble) {
	for _, l := range v.Limiters {
		if l.open() {
			all = append(all, trouble{Class: "bad", id: l.state(), Text: l.bypassed() + " unavailable", Since: l.Since})
		}
	}
	// One percent is also the threshold of the alert RateLimitUndecided.
	if alone := v.Alone(); v.Shared() && 100*alone > v.Latency.Count && !slices.ContainsFunc(v.Limiters, limiterView.open) {
		text := percentText(alone, v.Latency.Count) + " of the decisions are made without Redis"
		all = append(all, trouble{Class: "warn", id: "alone", Text: text})
	}
	for _, p := range v.Policies {
		if p.Outcomes["failed_closed"] > 0 {
			all = append(all, trouble{Class: "bad", id: "closed " + p.Name, Text: p.Name + " refuses requests without Redis"})
		}
	}
	denying := slices.ContainsFunc(v.Policies, policyView.deniesMost)
	if 2*v.Denied > v.Requests && !denying {
		all = append(all, trouble{Class: "warn", id: "denied", Text: "Most requests denied"})
	}
	for _, p := range v.Policies {
		if p.deniesMost() && p.Outcomes["failed_closed"] == 0 {
			all = append(all, trouble{Class: "warn", id: "denied " + p.Name, Text: p.Name + " denies most requests"})
		}
	}
	for _, p := range v.Policies {
		if t, found := p.forEveryone(); found {
			all = append(all, t)
		}
	}
	for _, f := range v.Findings {
		of := problemOf(f)
		all = append(all, trouble{Class: "warn", id: of, Text: of, Since: f.First})
	}
	return all
}

// forEveryone returns the trouble of a policy that denies no client. A policy in
// shadow by its configuration stays so, unless an override turns it off.
func (p policyView) forEveryone() (t trouble, found bool) {
	mode := map[ratelimit.Mode]string{ratelimit.ModeOff: "off", ratelimit.ModeShadow: "in shadow"}[p.mode]
	if p.mode == ratelimit.ModeShadow && slices.Contains(p.Modes, "shadow") {
		return trouble{Class: "warn", id: "shadow " + p.Name, Text: p.Name + " is in shadow for everyone by configuration"}, true
	}
	return trouble{Class: "warn", id: "everyone " + p.Name + mode, Text: p.Name + " is " + mode + " for everyone"}, mode != ""
}

func problemOf(f algorithms.Finding) string {
	if f.Policy == "" {
		return "Configuration problem " + f.Code
	}
	return "Configuration problem " + f.Code + " of " + f.Policy
}

// health returns the badge: the worst trouble and how many others there are, or
// since when there is none.
func (v *view) health(healthy time.Time) trouble {
	problems, all := len(v.Problems()), v.withoutFindings() // equal findings count once
	switch {
	case len(all) > 0:
		badge := all[0]
		if others := len(all) - 1 + problems; others > 0 {
			badge.Text += fmt.Sprintf(", and %s", plural(others, "other problem", "other problems"))
		}
		return badge
	case problems > 0:
		return trouble{Class: "warn", Text: plural(problems, "configuration problem", "configuration problems"), Since: v.Troubles[0].Since}
	default:
		return trouble{Class: "good", Text: "Healthy", Since: healthy}
	}
}

func (v *view) withoutFindings() []trouble {
	return slices.DeleteFunc(slices.Clone(v.Troubles), func(t trouble) bool { return t.Text == t.id })
}

func (p policyView) deniesMost() bool { return 2*p.Denied() > p.Requests }
