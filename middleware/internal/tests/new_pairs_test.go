package tests

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// TestMistakesInPairs: New refuses keys of tenants that clients can invent, and chains of policies.
func TestMistakesInPairs(t *testing.T) {
	all, identity := keyfunc.Const("all"), keyfunc.User(userOf)
	behind := func(p ratelimit.Policy) []ratelimit.Policy {
		p.Name, p.Key, p.Limit, p.After = "credits", identity, hourly, "plan"
		return []ratelimit.Policy{p, {Name: "plan", Key: identity, Limit: hourly}}
	}
	for name, tt := range map[string]struct {
		policies []ratelimit.Policy
		want     string
	}{
		"shares by header":         {[]ratelimit.Policy{{Name: "p", Key: all, Limit: hourly, ShareBy: keyfunc.Header("X-Tenant")}}, "ShareBy & verified identity"},
		"shares by address":        {[]ratelimit.Policy{{Name: "p", Key: all, Limit: hourly, ShareBy: keyfunc.FirstOf(identity, keyfunc.IP(nil))}}, "ShareBy & verified identity"},
		"shares by a constant":     {[]ratelimit.Policy{{Name: "p", Key: all, Limit: hourly, ShareBy: all}}, "ShareBy & verified identity"},
		"shares of own limit":      {[]ratelimit.Policy{{Name: "p", Key: identity, Limit: hourly, ShareBy: identity}}, "ShareBy & Key that clients share"},
		"shares of an address":     {[]ratelimit.Policy{{Name: "p", Limit: hourly, ShareBy: identity}}, "ShareBy & Key that clients share"},
		"shares of a log":          {[]ratelimit.Policy{{Name: "p", Key: all, Limit: algorithms.SlidingWindowLog(1, time.Second), ShareBy: identity}}, "ShareBy & sliding-window-log"},
		"shares and a candidate":   {[]ratelimit.Policy{{Name: "p", Key: all, Limit: hourly, Candidate: &hourly, ShareBy: identity}}, "ShareBy & Candidate"},
		"weights without shares":   {[]ratelimit.Policy{{Name: "p", Limit: hourly, Weights: map[string]int64{"a": 1}}}, "Weights needs ShareBy"},
		"weight of 0":              {[]ratelimit.Policy{{Name: "p", Key: all, Limit: hourly, ShareBy: identity, Weights: map[string]int64{"a": 0}}}, `tier "a" is 0`},
		"behind nothing":           {[]ratelimit.Policy{{Name: "p", Limit: hourly, After: "q"}}, `After names "q"`},
		"behind itself":            {[]ratelimit.Policy{{Name: "p", Limit: hourly, After: "p"}}, "chain"},
		"three behind each other":  {append(behind(ratelimit.Policy{}), ratelimit.Policy{Name: "third", Limit: hourly, After: "credits"}), "chain"},
		"two behind one":           {append(behind(ratelimit.Policy{}), ratelimit.Policy{Name: "third", Limit: hourly, After: "plan"}), "chain"},
		"a shadow behind a policy": {behind(ratelimit.Policy{Shadow: true}), "After & Shadow"},
		"another Fail":             {behind(ratelimit.Policy{Fail: algorithms.FailOpen}), "After & Fail"},
		"a ban behind a policy":    {behind(ratelimit.Policy{Ban: &ratelimit.Ban{Denials: 3, Within: time.Minute, For: time.Hour}}), "After & Ban"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ratelimit.New(newStill(t), nil, tt.policies...)
			if err == nil {
				t.Fatal("got no error")
			}
			for _, words := range strings.Split(tt.want, " & ") {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("got %v, want %q in it", err, words)
				}
			}
		})
	}
}
