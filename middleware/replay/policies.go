// Policies from a JSON file, for services whose limits are not in limits.go.

package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// A filePolicy is a policy as a file has it.
type filePolicy struct {
	Name      string            `json:"name"`
	Routes    []string          `json:"routes"`    // "METHOD /path/{id}", or "unmatched"; none: all
	Key       []string          `json:"key"`       // the first of "user" and "address" that a request has, or "all"; none: address
	PerRoute  bool              `json:"per_route"` // each route for itself
	Limit     string            `json:"limit"`
	Tiers     map[string]string `json:"tiers"`     // limits by tier
	Candidate string            `json:"candidate"` // a limit to try
	Costs     map[string]int64  `json:"costs"`     // by route; 1 for all others
	ChargeIf  []int             `json:"charge_if"` // statuses that count; none: all
	Fail      string            `json:"fail"`      // local, open or closed
	Capacity  bool              `json:"capacity"`
	Shadow    bool              `json:"shadow"`
}

// readPolicies reads a file of policies for routes. The error reports every mistake.
func readPolicies(name string, routes []string) ([]filePolicy, []ratelimit.Policy, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	var raw []json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	var errs []error
	if _, err := d.Token(); err != io.EOF {
		errs = append(errs, fmt.Errorf("%s: more than one list", name))
	}
	if len(raw) == 0 {
		errs = append(errs, fmt.Errorf("%s: there are no policies", name))
	}
	all, policies := make([]filePolicy, len(raw)), make([]ratelimit.Policy, len(raw))
	names := make(map[string]bool)
	for i := range raw {
		f := &all[i]
		mistakes := f.read(raw[i])
		p, err := f.policy(routes)
		policies[i] = p
		mistakes = append(mistakes, err)
		if names[f.Name] {
			mistakes = append(mistakes, errors.New("the name is taken"))
		}
		names[f.Name] = true
		if err := errors.Join(mistakes...); err != nil {
			errs = append(errs, fmt.Errorf("%s: policy %d %q:\n%w", name, i+1, f.Name, err))
		}
	}
	return all, policies, errors.Join(errs...)
}

// read decodes each field by itself, so that one bad field hides no other.
func (f *filePolicy) read(raw json.RawMessage) (mistakes []error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return []error{err}
	}
	for name, value := range members {
		member, _ := json.Marshal(map[string]json.RawMessage{name: value}) // it was decoded from JSON
		d := json.NewDecoder(bytes.NewReader(member))
		d.DisallowUnknownFields()
		if err := d.Decode(f); err != nil {
			mistakes = append(mistakes, err)
		}
	}
	slices.SortFunc(mistakes, func(a, b error) int { return bytes.Compare([]byte(a.Error()), []byte(b.Error())) })
	return mistakes
}

// policy returns the Policy, and every mistake.
func (f *filePolicy) policy(routes []string) (ratelimit.Policy, error) {
	p := ratelimit.Policy{Name: f.Name, Capacity: f.Capacity, Shadow: f.Shadow}
	var errs []error
	limit := func(field, text string) algorithms.Limit {
		l, err := algorithms.ParseLimit(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", field, err))
			return algorithms.Nobody() // reported
		}
		return l
	}
	p.Limit = limit("limit", f.Limit)
	if f.Candidate != "" {
		candidate := limit("candidate", f.Candidate)
		p.Candidate = &candidate
	}
	for tier, text := range f.Tiers {
		if p.Tiers == nil {
			p.Tiers = make(map[string]algorithms.Limit)
		}
		p.Tiers[tier] = limit("tiers: "+tier, text)
	}
	for _, route := range f.Routes {
		if route != unmatched && !slices.Contains(routes, route) {
			errs = append(errs, fmt.Errorf("routes: there is no route %q", route))
		}
	}
	for route, cost := range f.Costs {
		if !slices.Contains(routes, route) {
			errs = append(errs, fmt.Errorf("costs: there is no route %q", route))
		}
		if cost < 0 {
			errs = append(errs, fmt.Errorf("costs: the cost %d of %q is negative", cost, route))
		}
	}
	if f.Costs != nil {
		p.Cost = func(r *http.Request) int64 { return f.cost(r) }
	}
	if f.ChargeIf != nil {
		p.ChargeIf = func(status int) bool { return slices.Contains(f.ChargeIf, status) }
	}
	modes := map[string]algorithms.FailureMode{
		"": algorithms.FailLocal, "local": algorithms.FailLocal, "open": algorithms.FailOpen, "closed": algorithms.FailClosed,
	}
	mode, ok := modes[f.Fail]
	if p.Fail = mode; !ok {
		errs = append(errs, fmt.Errorf("fail: %q is not local, open or closed", f.Fail))
	}
	key, err := f.key()
	p.Key = key
	errs = append(errs, err)
	_, err = ratelimit.New(algorithms.NewMemory(nil), nil, p)
	return p, errors.Join(append(errs, err)...)
}

// key returns the key. The user comes from the log.
func (f *filePolicy) key() (keyfunc.Key, error) {
	kinds := f.Key
	if len(kinds) == 0 {
		kinds = []string{"address"}
	}
	var parts []keyfunc.Key
	var errs []error
	for _, kind := range kinds {
		switch kind {
		case "user":
			parts = append(parts, keyfunc.User(noUser))
		case "address":
			parts = append(parts, keyfunc.IP(nil))
		case "all":
			parts = append(parts, keyfunc.Const("all"))
		default:
			errs = append(errs, fmt.Errorf("key: %q is not user, address or all", kind))
		}
	}
	if errs != nil {
		return keyfunc.Key{}, errors.Join(errs...)
	}
	key := parts[0]
	if len(parts) > 1 {
		key = keyfunc.FirstOf(parts...)
	}
	if f.PerRoute {
		key = keyfunc.Join(key, keyfunc.Route())
	}
	return key, nil
}

// noUser finds no user beside the log's, which the middleware knows.
func noUser(context.Context) (keyfunc.Identity, bool) { return keyfunc.Identity{}, false }

// cost returns the cost of a request's route. The router knows the route by another name:
// it drops a slash at the end, and HEAD is not GET.
func (f *filePolicy) cost(r *http.Request) int64 {
	route, _ := r.Context().Value(routeKey{}).(string)
	if cost, ok := f.Costs[route]; ok {
		return cost
	}
	return 1
}

// appliesTo reports whether the policy counts requests of a route.
func (f *filePolicy) appliesTo(route string) bool {
	return len(f.Routes) == 0 || slices.Contains(f.Routes, route)
}
