// The answers to GET, as JSON.

package console

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// A policyView is a policy as JSON.
type policyView struct {
	Name      string                      `json:"name"`
	Keys      string                      `json:"keys"` // their parts
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
	all := []policyView{}
	for w := range h.console.policies() {
		p := w.policy
		v := policyView{
			Name: p.Name, Keys: w.shapes(), Limit: p.Limit, Tiers: p.Tiers, Candidate: p.Candidate,
			Fail: p.Fail.String(), Hidden: p.Hidden, Capacity: p.Capacity, Shadow: p.Shadow,
			Everyone: w.inForce(ratelimit.Everyone, "", algorithms.Limit{}).Override,
		}
		all = append(all, v)
	}
	return map[string]any{"policies": all}, nil
}

func (h *handler) who(r *http.Request) (any, error) {
	client, err := clientOf(r)
	if err != nil {
		return nil, err
	}
	if h.elsewhere(r) {
		if v := h.whoEverywhere(r); len(v.Policies) > 0 {
			return v, nil
		}
	}
	all, err := h.console.Who(r.Context(), client...)
	if err != nil {
		return nil, err
	}
	return whoView{Policies: all}, nil
}

// clientOf returns the client of a query: any number of usr, ip and key.
func clientOf(r *http.Request) (client []Subject, err error) {
	query, err := queryOf(r)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{account, address, "key"} {
		for _, value := range query[name] {
			s, err := subjectOf(name, value)
			if err != nil {
				return nil, err
			}
			client = append(client, s)
		}
		delete(query, name)
	}
	delete(query, "here")
	if len(query) > 0 || len(client) == 0 {
		return nil, &refusal{http.StatusBadRequest, "want usr=ACCOUNT, ip=ADDRESS or key=TEXT, or several of them, and nothing else"}
	}
	return client, nil
}

// subjectOf returns the client that a parameter names. A hash, as the status page
// shows it, is a key.
func subjectOf(name, value string) (Subject, error) {
	switch {
	case value == "":
		return Subject{}, &refusal{http.StatusBadRequest, name + " is empty"}
	case name == "key":
		return Subject{Key: value}, nil
	case hash.MatchString(name + "=" + value):
		return Subject{Key: name + "=" + value}, nil
	case name == account:
		return Subject{ID: value}, nil
	}
	if a, err := netip.ParseAddr(value); err == nil {
		return Subject{IP: a}, nil
	}
	if _, err := netip.ParsePrefix(value); err != nil {
		return Subject{}, &refusal{http.StatusBadRequest, "ip is neither an address nor a prefix of addresses"}
	}
	return Subject{Key: name + "=" + value}, nil
}

func (h *handler) denied(r *http.Request) (any, error) {
	since, err := sinceOf(r, "here")
	if err != nil {
		return nil, err
	}
	// A client may be new to one instance only, so the others are asked for all of theirs.
	return h.clients(r, "/denied", since, func() []Client { return h.console.Denied(since) }), nil
}

func (h *handler) near(r *http.Request) (any, error) {
	if _, err := parameters(r, "here"); err != nil {
		return nil, err
	}
	return h.clients(r, "/near", time.Time{}, h.console.Near), nil
}

// sinceOf reads the query since=: an instant, such as 2026-11-26T14:00:00Z, or how long
// ago it is, such as 1h; empty is the zero Time.
func sinceOf(r *http.Request, also ...string) (time.Time, error) {
	query, err := parameters(r, append(also, "since")...)
	text := query.Get("since")
	if err != nil || text == "" {
		return time.Time{}, err
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(-ago), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, &refusal{http.StatusBadRequest, "since is neither an instant such as 2026-11-26T14:00:00Z nor a time ago such as 1h"}
	}
	return t, nil
}
