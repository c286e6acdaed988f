// What has changed recently, and since when each trouble lasts.

package statuspage

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/internal/hashed"
)

const (
	keptChanges  = 50
	shownChanges = 20
	mergeWithin  = time.Minute     // equal changes are one
	watchEvery   = 5 * time.Second // also while no operator reads the page
)

// A change is something that an operator may ask for after an incident.
type change struct {
	At    time.Time `json:"at"` // of the last time
	Text  string    `json:"text"`
	Times int       `json:"times"`
}

// A history remembers troubles and changes.
type history struct {
	watched atomic.Int64 // the last period of watchEvery

	mu       sync.Mutex
	troubles map[string]trouble // by id
	healthy  time.Time          // since when there is none
	limiters []ratelimit.Finding
	changes  []change // oldest first
}

// add adds a change. It requires mu.
func (h *history) add(at time.Time, text string) {
	if n := len(h.changes); n > 0 {
		if last := &h.changes[n-1]; last.Text == text && at.Sub(last.At) < mergeWithin {
			last.At, last.Times = at, last.Times+1
			return
		}
	}
	h.changes = append(h.changes[max(0, len(h.changes)-keptChanges+1):], change{at.UTC(), text, 1})
}

// note sets since when the troubles of v last, and notes each beginning and end.
// It requires mu.
func (h *history) note(v *view) {
	present := make(map[string]trouble)
	v.Troubles = v.troubles()
	for i := range v.Troubles {
		t := &v.Troubles[i]
		if known, found := h.troubles[t.id]; found {
			t.Since = known.Since
		} else {
			if t.Since.IsZero() {
				t.Since = v.At
			}
			if t.began != "" {
				h.add(t.Since, t.began)
			}
		}
		present[t.id] = *t
	}
	for id, t := range h.troubles {
		if _, lasts := present[id]; !lasts && t.ended != "" {
			h.add(v.At, v.ending(t))
		}
	}
	if len(present) == 0 && len(h.troubles) > 0 {
		h.healthy = v.At
	}
	h.troubles = present
}

// watch notes changes also while no operator reads the page.
func (p *Page) watch(now time.Duration) {
	if int64(now/watchEvery) <= p.history.watched.Load() || !p.history.mu.TryLock() {
		return
	}
	defer p.history.mu.Unlock()
	p.history.watched.Store(int64(now / watchEvery))
	v, _ := p.survey(now)
	v.Findings = append(v.Findings, p.history.limiters...)
	p.history.note(v)
}

// banned notes a ban.
func (p *Page) banned(e *ratelimit.Event) {
	p.history.mu.Lock()
	defer p.history.mu.Unlock()
	p.history.add(time.Now(), fmt.Sprintf("%s banned a key for %s", e.Policy, spanText(e.Elapsed)))
}

// updated notes that a Middleware has other policies.
func (p *Page) updated(m *ratelimit.Middleware) {
	var names []string
	for _, policy := range m.Policies() {
		names = append(names, policy.Name)
	}
	p.history.mu.Lock()
	defer p.history.mu.Unlock()
	p.history.add(time.Now(), "Policies updated: "+strings.Join(names, ", "))
}

// A changing is a table of overrides that remembers its changes, such as those of
// package overrides.
type changing interface {
	Changes(yield func(at time.Time, policy, key string, o *ratelimit.Override))
}

// overrideChanges returns the changes of all tables of overrides.
func overrideChanges(middlewares []*ratelimit.Middleware) (all []change) {
	var seen []changing
	plain := make(map[string]bool)
	for _, m := range middlewares {
		for _, p := range m.Policies() {
			plain[p.Name] = p.PlainKeys
		}
		table, ok := m.Overrides().(changing)
		if ok && !slices.ContainsFunc(seen, func(other changing) bool { return same(other, table) }) {
			seen = append(seen, table)
		}
	}
	for _, table := range seen {
		table.Changes(func(at time.Time, policy, key string, o *ratelimit.Override) {
			all = append(all, change{at.UTC(), overrideChange(policy, key, plain[policy], o), 1})
		})
	}
	return all
}

func overrideChange(policy, key string, plain bool, o *ratelimit.Override) string {
	if !plain {
		key = hashed.Key(key)
	}
	if key == ratelimit.Everyone {
		key = "everyone"
	}
	of := "Override of " + policy
	if policy == "*" {
		of = "Override of all policies"
	}
	switch {
	case o == nil:
		return fmt.Sprintf("%s for %s cleared", of, key)
	case o.Until.IsZero():
		return fmt.Sprintf("%s for %s: %s", of, key, overrideText(o))
	default:
		return fmt.Sprintf("%s for %s: %s until %s", of, key, overrideText(o), o.Until.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
}

// recent returns the latest changes, also of circuits and overrides, latest first.
// It requires mu.
func (h *history) recent(limiters []limiterView, middlewares []*ratelimit.Middleware) []change {
	all := append(slices.Clone(h.changes), overrideChanges(middlewares)...)
	for _, l := range limiters {
		for _, c := range l.Stats.Changes {
			text := l.Title() + " available again"
			if c.Open {
				text = l.Title() + " unavailable: " + because(c.Reason)
			}
			all = append(all, change{c.At.UTC(), text, 1})
		}
	}
	slices.SortStableFunc(all, func(a, b change) int { return b.At.Compare(a.At) })
	return all[:min(len(all), shownChanges)]
}
