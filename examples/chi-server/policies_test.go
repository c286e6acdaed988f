// The test of the exact limits of the API.

package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// TestPolicies: the exact limits, also the hidden ones, which no response mentions.
func TestPolicies(t *testing.T) {
	t.Parallel()
	const capacity = "charges-capacity token-bucket 10000/1s hidden"
	tests := []struct {
		row    string // its first policy
		apiKey string
		want   []string
	}{
		{"orders", "", []string{"orders token-bucket 60/1m burst 10"}},
		{"search", "", []string{"search sliding-window-counter 30/1m"}},
		{"reports", "", []string{"reports fixed-window 20/1m"}},
		{"exports", "", []string{"exports token-bucket 10/1s hidden"}},
		{"login", "", []string{"login sliding-window-log 5/1m", "login-capacity token-bucket 1000/1m hidden"}},
		{"sms", "", []string{"sms leaky-bucket 2/1s burst 5"}},
		{"charges-merchant", "demo-free", []string{"charges-merchant free token-bucket 100/1m burst 10", capacity}},
		{"charges-merchant", "demo-pro", []string{"charges-merchant pro token-bucket 1000/1m burst 100", capacity}},
		{"charges-merchant", "demo-enterprise", []string{"charges-merchant enterprise token-bucket 5000/1m burst 500", capacity}},
		{"completions", "demo-free", []string{"completions token-bucket 10000/1m"}},
		{"demo", "", []string{"demo token-bucket 3000/1m burst 1500 hidden", "demo-open concurrent 24/10s hidden"}},
		{"console", "", []string{"console sliding-window-log 10/1m"}},
		{"unmatched", "", []string{"unmatched token-bucket 60/1m"}},
	}
	for _, policies := range limits {
		row := policies[0].Name
		m := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, policies...))
		tested := false
		for _, tt := range tests {
			if tt.row != row {
				continue
			}
			tested = true
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			if tt.apiKey != "" {
				r.Header.Set("X-API-Key", tt.apiKey)
			}
			v, err := m.Check(r)
			holds := strings.Contains(strings.Join(tt.want, " "), "concurrent") // Check cannot hold units
			if got := describe(v); errors.Is(err, algorithms.ErrInvalid) != holds || v.Allowed == holds || !slices.Equal(got, tt.want) {
				t.Errorf("%s %s: got %q and error %v, want %q allowed, unless it holds units", row, tt.apiKey, got, err, tt.want)
			}
		}
		if !tested {
			t.Errorf("no test has the limits of %s", row)
		}
	}
}

// describe returns the policies of a verdict: name, tier, limit, and whether it is hidden.
func describe(v ratelimit.Verdict) []string {
	var all []string
	for _, p := range v.Policies {
		words := []string{p.Name, p.Tier, p.Limit.String()}
		if p.Hidden {
			words = append(words, "hidden")
		}
		words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
		all = append(all, strings.Join(words, " "))
	}
	return all
}
