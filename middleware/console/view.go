// The answers to GET, as JSON.

package console

import (
	"net/http"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// A policyView is a policy as JSON.
type policyView struct {
	Name      string                      `json:"name"`
	Kinds     []string                    `json:"kinds"` // of the parts of its keys
	Limit     algorithms.Limit            `json:"limit"`
	Tiers     map[string]algorithms.Limit `json:"tiers,omitempty"`
	Candidate *algorithms.Limit           `json:"candidate,omitempty"`
	Fail      string                      `json:"fail"`
	Hidden    bool                        `json:"hidden,omitempty"`
	Capacity  bool                        `json:"capacity,omitempty"`
	Shadow    bool                        `json:"shadow,omitempty"`
	Everyone  *ratelimit.Override         `json:"everyone,omitempty"` // the override of all keys
}

func (h *handler) policies(r *http.Request) (any, error) {
	if _, err := parameters(r); err != nil {
		return nil, err
	}
	var all []policyView
	known := make(map[string]bool)
	for _, m := range h.console.all {
		for _, p := range m.Policies() {
			if known[p.Name] {
				continue
			}
			known[p.Name] = true
			v := policyView{
				Name: p.Name, Kinds: textsOf(&p).kinds, Limit: p.Limit, Tiers: p.Tiers, Candidate: p.Candidate,
				Fail: p.Fail.String(), Hidden: p.Hidden, Capacity: p.Capacity, Shadow: p.Shadow,
			}
			if table := m.Overrides(); table != nil {
				if o, found := table.Find(p.Name, ratelimit.Everyone); found {
					v.Everyone = &o
				}
			}
			all = append(all, v)
		}
	}
	return map[string]any{"policies": all}, nil
}

// An explanationView is an Explanation as JSON, with durations as text.
type explanationView struct {
	Policy      string              `json:"policy"`
	Key         string              `json:"key"`
	Tier        string              `json:"tier,omitempty"`
	Override    *ratelimit.Override `json:"override,omitempty"`
	Denied      bool                `json:"denied"`
	Reason      Reason              `json:"reason,omitempty"`
	ClearsAfter string              `json:"clears_after,omitempty"`
	Limits      []limitView         `json:"limits"`
}

type limitView struct {
	Reason     Reason           `json:"reason"`
	Tier       string           `json:"tier,omitempty"`
	Limit      algorithms.Limit `json:"limit"`
	InForce    bool             `json:"in_force"`
	Remaining  int64            `json:"remaining"`
	ResetAfter string           `json:"reset_after"`
	UnitAfter  string           `json:"unit_after"`
	Source     string           `json:"source"`
	Stored     string           `json:"stored,omitempty"`
}

func wait(d time.Duration) string {
	if d == algorithms.Never {
		return "never"
	}
	return d.String()
}

func (h *handler) explain(r *http.Request) (any, error) {
	query, err := parameters(r, "policy", "key", "id", "ip", "tier")
	if err != nil {
		return nil, err
	}
	s, err := named{query["policy"], query["key"], query["id"], query["ip"]}.subject()
	if err != nil {
		return nil, err
	}
	s.Tier = query["tier"]
	e, err := h.console.Explain(r.Context(), s)
	if err != nil {
		return nil, err
	}
	v := explanationView{
		Policy: e.Subject.Policy, Key: e.Subject.Key, Tier: e.Subject.Tier, Override: e.Override,
		Denied: e.Denied, Reason: e.Reason,
	}
	if e.Denied {
		v.ClearsAfter = wait(e.ClearsAfter)
	}
	for _, l := range e.Limits {
		v.Limits = append(v.Limits, limitView{
			Reason: l.Reason, Tier: l.Tier, Limit: l.Limit, InForce: l.InForce, Remaining: l.Remaining,
			ResetAfter: wait(l.ResetAfter), UnitAfter: wait(l.UnitAfter), Source: l.Source.String(), Stored: l.Stored,
		})
	}
	return v, nil
}
