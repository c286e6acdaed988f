// The test of the exact limits of the API.

package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/overrides"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// TestPolicies: the exact limits, also the private one, of which no response speaks.
func TestPolicies(t *testing.T) {
	t.Parallel()
	w, err := newWatch(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLimits(&backend{limiter: algorithms.NewMemory(nil), table: overrides.NewMemory()}, config{secret: []byte(demoSecret)}, w)
	if err != nil {
		t.Fatal(err)
	}
	global := "charges-global token-bucket 10000/1s private"
	tests := []struct {
		name string
		m    *ratelimit.Middleware
		key  string
		want []string
	}{
		{"orders", l.orders, "", []string{"orders token-bucket 60/1m burst 10"}},
		{"search", l.search, "", []string{"search sliding-window-counter 30/1m"}},
		{"reports", l.reports, "", []string{"reports fixed-window 20/1m"}},
		{"login", l.login, "", []string{"login sliding-window-log 5/1m"}},
		{"sms", l.sms, "", []string{"sms leaky-bucket 2/1s burst 5"}},
		{"completions", l.completions, "demo-free", []string{"completions token-bucket 10000/1m"}},
		{"unmatched", l.unmatched, "", []string{"unmatched token-bucket 60/1m"}},
		{"charges, free", l.charges, "demo-free", []string{"charges-merchant free token-bucket 100/1m burst 10", global}},
		{"charges, pro", l.charges, "demo-pro", []string{"charges-merchant pro token-bucket 1000/1m burst 100", global}},
		{"charges, enterprise", l.charges, "demo-enterprise", []string{"charges-merchant enterprise token-bucket 5000/1m burst 500", global}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			if tt.key != "" {
				r.Header.Set("X-API-Key", tt.key)
			}
			v, err := tt.m.Check(r)
			if err != nil || !v.Allowed {
				t.Fatalf("got verdict %+v and error %v, want allowed", v, err)
			}
			if got := describe(v); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// describe returns the policies of a verdict: name, tier, limit, and whether it is private.
func describe(v ratelimit.Verdict) []string {
	var all []string
	for _, p := range v.Policies {
		words := []string{p.Name, p.Tier, p.Limit.String()}
		if p.Private {
			words = append(words, "private")
		}
		words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
		all = append(all, strings.Join(words, " "))
	}
	return all
}
