package middleware

import (
	"net/http"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/overrides"
)

// policyView is a policy as JSON.
type policyView struct {
	Name      string                      `json:"name"`
	Limit     algorithms.Limit            `json:"limit"`
	Tiers     map[string]algorithms.Limit `json:"tiers,omitempty"`
	Candidate *algorithms.Limit           `json:"candidate,omitempty"`
	Fail      string                      `json:"fail"`
	Private   bool                        `json:"private,omitempty"`
	Capacity  bool                        `json:"capacity,omitempty"`
	Shadow    bool                        `json:"shadow,omitempty"`
	Everyone  *overrides.Override         `json:"everyone,omitempty"` // the override of all its keys
}

func (h *consoleHandler) policies(r *http.Request) (any, error) {
	if _, err := parameters(r, ""); err != nil {
		return nil, err
	}
	var all []policyView
	for _, p := range h.console.policies() {
		v := policyView{
			Name: p.Name, Limit: p.Limit, Tiers: p.Tiers, Candidate: p.Candidate,
			Fail: p.Fail.String(), Private: p.Private, Capacity: p.Capacity, Shadow: p.Shadow,
		}
		if t, err := h.console.target(Subject{Policy: p.Name, Key: overrides.Everyone}); err == nil {
			v.Everyone = t.override
		}
		all = append(all, v)
	}
	return map[string]any{"policies": all}, nil
}

// explanationView is an Explanation as JSON, with durations as text.
type explanationView struct {
	Policy      string              `json:"policy"`
	Key         string              `json:"key"`
	Tier        string              `json:"tier,omitempty"`
	Override    *overrides.Override `json:"override,omitempty"`
	Denied      bool                `json:"denied"`
	Reason      string              `json:"reason"`
	ClearsAfter string              `json:"clears_after,omitempty"`
	Limits      []limitView         `json:"limits"`
}

type limitView struct {
	Reason     string           `json:"reason"`
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

func (h *consoleHandler) explain(r *http.Request) (any, error) {
	query, err := parameters(r, "key", "policy", "tier")
	if err != nil {
		return nil, err
	}
	e, err := h.console.Explain(r.Context(), Subject{Policy: query["policy"], Key: query["key"], Tier: query["tier"]})
	if err != nil {
		return nil, err
	}
	v := explanationView{
		Policy: e.Subject.Policy, Key: e.Subject.Key, Tier: e.Subject.Tier, Override: e.Override,
		Denied: e.Denied, Reason: e.Reason.String(),
	}
	if e.Denied {
		v.ClearsAfter = wait(e.ClearsAfter)
	}
	for _, l := range e.Limits {
		v.Limits = append(v.Limits, limitView{
			Reason: l.Reason.String(), Tier: l.Tier, Limit: l.Limit, InForce: l.InForce, Remaining: l.Remaining,
			ResetAfter: wait(l.ResetAfter), UnitAfter: wait(l.UnitAfter), Source: l.Source.String(), Stored: l.Stored,
		})
	}
	return v, nil
}
