package headers_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
)

// at is the instant of the vectors, 1795262400 in Unix seconds.
var at = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// maxWait is 14 days in seconds, the longest wait that a response names.
const maxWait = 1_209_600

func newQuota(t testing.TB, c headers.QuotaConfig) *headers.Quota {
	t.Helper()
	q, err := headers.NewQuota(c)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// bucket is a token bucket whose burst is its requests.
func bucket(t testing.TB, name string, requests int64, window time.Duration) *headers.Quota {
	t.Helper()
	return newQuota(t, headers.QuotaConfig{
		Name: name, Limit: requests, Requests: requests, Window: window, Continuous: true,
	})
}

// window is a fixed or sliding window.
func window(t testing.TB, name string, requests int64, window time.Duration) *headers.Quota {
	t.Helper()
	return newQuota(t, headers.QuotaConfig{
		Name: name, Limit: requests, Requests: requests, Window: window,
	})
}

func write(d headers.Dialect, resp headers.Response) http.Header {
	h := http.Header{}
	d.Write(h, resp)
	return h
}

// dump returns h as an HTTP/1.1 server writes it, with bare newlines.
func dump(h http.Header) string {
	var b strings.Builder
	_ = h.Write(&b) // a Builder does not fail
	return strings.ReplaceAll(b.String(), "\r\n", "\n")
}

// admitted returns an admitted response whose quotas all have a State.
func admitted(states ...headers.State) headers.Response {
	resp := headers.Response{States: states, Now: at}
	for _, s := range states {
		resp.Quotas = append(resp.Quotas, s.Quota)
	}
	return resp
}

// denied returns a denied response with the longest wait of its denied States.
func denied(states ...headers.State) headers.Response {
	resp := admitted(states...)
	resp.Denied = true
	for _, s := range states {
		if s.Denied {
			resp.RetryAfter = max(resp.RetryAfter, s.RetryAfter)
		}
	}
	return resp
}

// absent stands for an optional parameter that an item does not have.
const absent = -1

type limitItem struct {
	name string
	r, t int64
}

type policyItem struct {
	name string
	q, w int64
	unit string
}

// readLimits reads RateLimit as section 4 of the draft defines it. It accepts r
// and t only, in this order.
func readLimits(lines []string) ([]limitItem, error) {
	items, err := readList(lines)
	if err != nil {
		return nil, err
	}
	var limits []limitItem
	for _, item := range items {
		l := limitItem{r: absent, t: absent}
		if err := bind(item, &l.name, []string{"r", "t"}, map[string]any{
			"r": &l.r, "t": &l.t,
		}); err != nil {
			return nil, err
		}
		if l.r == absent {
			return nil, fmt.Errorf("%q has no r", l.name)
		}
		limits = append(limits, l)
	}
	return limits, nil
}

// readPolicies reads RateLimit-Policy as section 3 of the draft defines it.
func readPolicies(lines []string) ([]policyItem, error) {
	items, err := readList(lines)
	if err != nil {
		return nil, err
	}
	var policies []policyItem
	for _, item := range items {
		p := policyItem{q: absent, w: absent}
		if err := bind(item, &p.name, []string{"q", "qu", "w"}, map[string]any{
			"q": &p.q, "qu": &p.unit, "w": &p.w,
		}); err != nil {
			return nil, err
		}
		if p.q == absent || p.w == 0 || p.unit == "requests" {
			return nil, fmt.Errorf("bad policy %+v", p)
		}
		policies = append(policies, p)
	}
	return policies, nil
}

// bind stores an item. Its value must be a String. Its parameters must have the
// types of their variables and come in the given order.
func bind(item sfItem, name *string, order []string, to map[string]any) error {
	var ok bool
	if *name, ok = item.value.(string); !ok {
		return fmt.Errorf("%v is not a String", item.value)
	}
	last := -1
	for _, key := range item.order {
		i := slices.Index(order, key)
		if i <= last {
			return fmt.Errorf("%q: parameter %s is unknown or out of order", *name, key)
		}
		last = i
		value := item.params[key]
		switch p := to[key].(type) {
		case *int64:
			if *p, ok = value.(int64); !ok || *p < 0 {
				return fmt.Errorf("%q: %s is %v", *name, key, value)
			}
		case *string:
			if *p, ok = value.(string); !ok {
				return fmt.Errorf("%q: %s is a %T", *name, key, value)
			}
		}
	}
	return nil
}

// policyOf returns the item of RateLimit-Policy of a quota.
func policyOf(q *headers.Quota) string {
	h := http.Header{}
	headers.Draft.Write(h, headers.Response{Quotas: []*headers.Quota{q}})
	return h.Get("RateLimit-Policy")
}
