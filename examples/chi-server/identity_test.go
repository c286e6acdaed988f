// Tests of accounts, addresses and the headers of answers.

package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestTiers(t *testing.T) {
	t.Parallel()
	s := start(t)
	tests := []struct {
		name   string
		fields []string
		q      int
		plan   string
	}{
		{"free", []string{"X-API-Key", "demo-free"}, 10, "free"},
		{"pro", []string{"X-API-Key", "demo-pro"}, 100, "pro"},
		{"enterprise", []string{"X-API-Key", "demo-enterprise"}, 500, "enterprise"},
		{"bearer", []string{"Authorization", "Bearer demo-pro"}, 100, "pro"},
		{"bearer, in any case and after spaces", []string{"Authorization", "bEARER   demo-enterprise"}, 500, "enterprise"},
		{"of two keys the first", []string{"X-API-Key", "demo-free", "Authorization", "Bearer demo-enterprise"}, 10, "free"},
		{"a key and other credentials", []string{"X-API-Key", "demo-pro", "Authorization", "Basic ZGVtbzpkZW1v"}, 100, "pro"},
	}
	for _, tt := range tests {
		r := s.send(t, "POST /v1/charges", "", tt.fields...)
		if r.status != http.StatusOK || !strings.Contains(r.body, fmt.Sprintf(`"plan":%q`, tt.plan)) {
			t.Errorf("%s: got %d and %s, want 200 and the plan %s", tt.name, r.status, r.body, tt.plan)
		}
		want := fmt.Sprintf(`"charges-merchant";q=%d;w=6`, tt.q)
		if got := r.header.Get("RateLimit-Policy"); got != want {
			t.Errorf("%s: got RateLimit-Policy %q, want %q", tt.name, got, want)
		}
		if got := fmt.Sprint(r.header); strings.Contains(got, "capacity") {
			t.Errorf("%s: the hidden policy is advertised: %s", tt.name, got)
		}
	}
}

func TestUnauthorized(t *testing.T) {
	t.Parallel()
	s := start(t)
	tests := []struct {
		line   string
		fields []string
		status int
	}{
		{"POST /v1/charges", nil, http.StatusUnauthorized},
		{"POST /v1/charges", []string{"X-API-Key", "guess"}, http.StatusUnauthorized},
		{"POST /v1/charges", []string{"Authorization", "Bearer guess"}, http.StatusUnauthorized},
		{"POST /v1/charges", []string{"Authorization", "Basic ZGVtbzpkZW1v"}, http.StatusUnauthorized},
		{"POST /v1/charges", []string{"X-API-Key", "guess", "Authorization", "Bearer demo-pro"}, http.StatusUnauthorized},
		{"POST /v1/charges", []string{"X-API-Key", ""}, http.StatusBadRequest},
		{"GET /v1/orders/1", []string{"X-API-Key", "guess"}, http.StatusUnauthorized},
		{"GET /v1/search", []string{"Authorization", "Bearer guess"}, http.StatusUnauthorized},
		{"GET /v1/reports", []string{"X-API-Key", "DEMO-FREE"}, http.StatusUnauthorized},
		{"POST /v1/sms", []string{"X-API-Key", "guess"}, http.StatusUnauthorized},
	}
	for _, tt := range tests {
		r := s.send(t, tt.line, "", tt.fields...)
		if r.status != tt.status || strings.Contains(r.body, "charged") {
			t.Errorf("%s %v: got %d and %s, want %d", tt.line, tt.fields, r.status, r.body, tt.status)
		}
		challenge := r.header.Get("WWW-Authenticate")
		if r.status == http.StatusUnauthorized && (!strings.Contains(challenge, "APIKey ") || !strings.Contains(challenge, "Bearer")) {
			t.Errorf("%s %v: got WWW-Authenticate %q, want both ways to send a key", tt.line, tt.fields, challenge)
		}
	}
}

// TestGuessing: unknown keys count for the client's address, however many there are. After too many of them, they get
// 429. A key that was valid from the address passes, and no owner of a key is charged.
func TestGuessing(t *testing.T) {
	backends(t, func(t *testing.T, args ...string) {
		s := start(t, append(args, "-trusted-proxies", "127.0.0.0/8")...)
		report := func(addr, field, value string) reply {
			return s.send(t, "GET /v1/reports", "", "X-Forwarded-For", addr, field, value)
		}
		if r := report("192.0.2.1", "X-API-Key", "demo-free"); r.status != http.StatusOK {
			t.Fatalf("got %d of a valid key, want 200", r.status)
		}
		unknown := 0
		for i := range 40 { // a unit of the allowance comes back per 3 s
			if r := report("192.0.2.1", "Authorization", fmt.Sprintf("Bearer guess-%d", i)); r.status == http.StatusUnauthorized {
				unknown++
			} else if r.status != http.StatusTooManyRequests {
				t.Fatalf("guess %d: got %d, want 401 or 429", i, r.status)
			}
		}
		if unknown < 20 || unknown == 40 {
			t.Errorf("got %d of 40 guesses answered 401, want 20 per minute", unknown)
		}
		if r := report("192.0.2.1", "X-API-Key", "demo-free"); r.status != http.StatusOK {
			t.Errorf("got %d for a key that was valid before, want 200", r.status)
		}
		if r := report("192.0.2.2", "X-API-Key", "demo-pro"); r.left() != 19 {
			t.Errorf("got %d left for the owner of another key, want 19", r.left())
		}
	})
}

// TestGuessingBehindProxy: guesses count for their client, and not for the proxy.
func TestGuessingBehindProxy(t *testing.T) {
	t.Parallel()
	s := start(t, "-trusted-proxies", "127.0.0.0/8")
	guess := func(client string, i int) int {
		return s.send(t, "GET /v1/reports", "", "X-API-Key", fmt.Sprint("guess", i), "X-Forwarded-For", client).status
	}
	for i := range 45 {
		guess("192.0.2.1", i)
	}
	if got := guess("192.0.2.2", 0); got != http.StatusUnauthorized {
		t.Errorf("got %d for another client's first guess, want 401", got)
	}
}

// TestTrustedProxies: X-Forwarded-For names the client only if a trusted proxy has sent it. The test counts logins,
// because their units do not come back within the test.
func TestTrustedProxies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		args    []string
		clients []string // X-Forwarded-For, one request each
		left    []int
	}{
		{"none", nil, []string{"192.0.2.1", "192.0.2.2", ""}, []int{4, 3, 2}},
		{
			"two clients behind ours", []string{"-trusted-proxies", "127.0.0.0/8"},
			[]string{"192.0.2.1", "192.0.2.2", "192.0.2.1", "", "192.0.2.2"}, []int{4, 4, 3, 4, 3},
		},
		{
			"a client that forges", []string{"-trusted-proxies", "127.0.0.0/8"},
			[]string{"192.0.2.1", "192.0.2.9, 192.0.2.1", "192.0.2.8,192.0.2.1"}, []int{4, 3, 2},
		},
		{
			"a chain of two", []string{"-trusted-proxies", "198.51.100.0/24, 127.0.0.1/32"},
			[]string{"192.0.2.1, 198.51.100.7", "192.0.2.2, 198.51.100.7", "192.0.2.1, 198.51.100.8"}, []int{4, 4, 3},
		},
		{"one address", []string{"-trusted-proxies", "127.0.0.1,::1"}, []string{"192.0.2.1", "192.0.2.2", "192.0.2.1"}, []int{4, 4, 3}},
		{"others", []string{"-trusted-proxies", "192.0.2.0/24,2001:db8::/32"}, []string{"192.0.2.1", "192.0.2.2"}, []int{4, 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, tt.args...)
			var left []int
			for _, client := range tt.clients {
				var fields []string
				if client != "" {
					fields = []string{"X-Forwarded-For", client}
				}
				left = append(left, s.send(t, "POST /v1/login", wrong, fields...).left())
			}
			if !slices.Equal(left, tt.left) {
				t.Errorf("%v: got %v left, want %v", tt.clients, left, tt.left)
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	draft := []string{"Ratelimit", "Ratelimit-Policy"}
	separate := []string{"Ratelimit-Limit", "Ratelimit-Policy", "Ratelimit-Remaining", "Ratelimit-Reset"}
	x := []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"}
	tests := []struct {
		args []string
		want []string
	}{
		{nil, slices.Concat(draft, separate)},
		{[]string{"-headers", "draft"}, draft},
		{[]string{"-headers", "separate"}, separate},
		{[]string{"-headers", "x-ratelimit"}, x},
		{[]string{"-headers", "x-ratelimit, draft"}, slices.Concat(draft, x)},
		{[]string{"-headers", "draft,separate,x-ratelimit"}, slices.Concat(draft, separate, x)},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			t.Parallel()
			s := start(t, tt.args...)
			slices.Sort(tt.want)
			tt.want = slices.Compact(tt.want)
			for range 5 {
				if r := s.send(t, "POST /v1/login", wrong); r.status != http.StatusUnauthorized || !slices.Equal(r.limitFields(), tt.want) {
					t.Errorf("got %d and %v, want 401 and %v", r.status, r.limitFields(), tt.want)
				}
			}
			want := append([]string{"Retry-After"}, tt.want...)
			slices.Sort(want)
			if r := s.send(t, "POST /v1/login", right); r.status != http.StatusTooManyRequests || !slices.Equal(r.limitFields(), want) {
				t.Errorf("denied: got %d and %v, want 429 and %v", r.status, r.limitFields(), want)
			}
		})
	}
}
