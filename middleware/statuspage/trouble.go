// What is wrong now, which is the badge of the page, and since when each trouble, and the state of each circuit, lasts.
//
// The page looks when an operator reads it, and, on a goroutine that then ends, at the
// first request of each five seconds. So each instant is when the page noticed something.
// Example: Redis fails at 12:00:01. The next request comes at 12:00:30, and the
// page shows "since 12:00:30".

package statuspage

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
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
		if !l.open() {
			continue
		}
		bypassed := l.Title()
		if open := l.Stats.Fallback.Open; open > 1 {
			bypassed = fmt.Sprintf("%d masters of %s", open, bypassed)
		}
		all = append(all, trouble{Class: "bad", id: l.state(), Text: bypassed + " unavailable", Since: l.Since})
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
		text := "Configuration problem " + f.Code
		if f.Policy != "" {
			text += " of " + f.Policy
		}
		all = append(all, trouble{Class: "warn", id: text, Text: text, Since: f.First})
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

const lookEvery = 5 * time.Second // while requests come

// noticed holds when the page noticed the present states.
type noticed struct {
	looked  atomic.Int64 // the last period of lookEvery
	looking atomic.Bool  // a goroutine looks

	mu       sync.Mutex           // guards the fields below
	since    map[string]time.Time // by the ids of troubles, and of circuits that have ever opened
	troubled bool                 // there was a trouble at the last look
	healthy  time.Time            // since when there is none
	findings []algorithms.Finding // of the limiters, when an operator read the page last
}

// note sets since when the circuits and the troubles of v last. It requires mu.
func (n *noticed) note(v *view) {
	present := make(map[string]time.Time)
	since := func(id string) time.Time {
		present[id] = cmp.Or(n.since[id], v.At)
		return present[id]
	}
	for i := range v.Limiters {
		if l := &v.Limiters[i]; l.Trips > 0 || l.Breaker == "open" {
			l.Since = since(l.state())
		}
	}
	v.Troubles = v.troubles()
	for i := range v.Troubles {
		if t := &v.Troubles[i]; t.Since.IsZero() {
			t.Since = since(t.id)
		}
	}
	troubled := len(v.Troubles) > 0
	if n.troubled && !troubled {
		n.healthy = v.At
	}
	n.since, n.troubled = present, troubled
}

// lookSoon notes troubles also while no operator reads the page. No request waits
// for that.
func (p *Page) lookSoon(now time.Duration) {
	n := &p.noticed
	period := int64(now / lookEvery)
	if looked := n.looked.Load(); period > looked && n.looked.CompareAndSwap(looked, period) && n.looking.CompareAndSwap(false, true) {
		go p.look(now)
	}
}

// look notes troubles. A limiter of another module may have Stats that panic.
func (p *Page) look(now time.Duration) {
	n := &p.noticed
	defer n.looking.Store(false)
	defer func() { _ = recover() }()
	v, _ := p.survey(now)
	n.mu.Lock()
	defer n.mu.Unlock()
	v.Findings = append(v.Findings, n.findings...)
	n.note(v)
}
