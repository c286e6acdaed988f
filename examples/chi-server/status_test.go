// The test of the status page.

package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
)

// TestStatus: the page counts the requests, as JSON and as HTML, with and without Redis.
func TestStatus(t *testing.T) {
	backends(t, func(t *testing.T, args ...string) {
		s := start(t, args...)
		denied := 0
		for range 15 {
			if s.send(t, "GET /v1/orders/1", "").status == http.StatusTooManyRequests {
				denied++
			}
		}
		s.send(t, "POST /v1/charges", "", "X-API-Key", "demo-pro")
		s.send(t, "POST /v1/charges", "", "X-API-Key", "guess")
		s.send(t, "POST /v1/charges", "")
		s.send(t, "GET /<script>alert(1)</script>", "")

		var page struct {
			Requests, Refused uint64
			Policies          []struct {
				Name     string
				Outcomes map[string]uint64
			}
			Clients []struct {
				Client string
				Denied int
			}
			Decisions []struct {
				Source string
				Count  uint64
			}
			Limiters []struct{ Name, Breaker string }
			Findings []any
		}
		got := s.send(t, "GET /status?format=json", "")
		if err := json.Unmarshal([]byte(got.body), &page); err != nil {
			t.Fatalf("%v:\n%s", err, got.body)
		}
		want := map[string]map[string]uint64{
			"orders":           {"allowed": uint64(15 - denied), "denied": uint64(denied)},
			"charges-merchant": {"allowed": 1, "key_error": 2},
			"charges-capacity": {"allowed": 1},
			"unmatched":        {"allowed": 1},
		}
		met := 0
		for _, p := range page.Policies {
			if want[p.Name] != nil {
				met++
			}
			if !maps.Equal(p.Outcomes, want[p.Name]) {
				t.Errorf("%s: got %v, want %v", p.Name, p.Outcomes, want[p.Name])
			}
		}
		if c := page.Clients; len(c) != 1 || c[0].Denied != denied || strings.Contains(c[0].Client, "127.0.0.1") {
			t.Errorf("got the clients %v, want one with %d denials, without its address", c, denied)
		}
		if met != len(want) {
			t.Errorf("got %+v, want all of %v", page.Policies, want)
		}
		if page.Requests != 19 || page.Refused != uint64(denied+2) || len(page.Findings) != 0 {
			t.Errorf("got %d requests, %d refused, findings %v, want 19, %d, and none", page.Requests, page.Refused, page.Findings, denied+2)
		}
		if l := page.Limiters[0]; len(args) > 0 && (l.Name != "redis" || l.Breaker != "closed" || page.Decisions[0].Count == 0) {
			t.Errorf("got %+v, decisions %+v, want a closed circuit of redis, and decisions by it", page.Limiters, page.Decisions)
		}

		html := s.send(t, "GET /status", "")
		if html.status != http.StatusOK || html.header.Get("Cache-Control") != "no-store" || strings.Contains(html.body, "<script") || !strings.Contains(html.body, "charges-merchant") {
			t.Errorf("got %d %v:\n%s", html.status, html.header, html.body)
		}
		if head := s.send(t, "HEAD /status", ""); head.status != http.StatusOK || head.body != "" {
			t.Errorf("HEAD: got %d %q", head.status, head.body)
		}
		if post := s.send(t, "POST /status", ""); post.status != http.StatusMethodNotAllowed || post.header.Get("Allow") != "GET, HEAD" {
			t.Errorf("POST: got %d, Allow %q", post.status, post.header.Get("Allow"))
		}
	})
}
