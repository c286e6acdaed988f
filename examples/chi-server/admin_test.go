// Tests of overrides and of the operators' console.

package main

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
)

const (
	token = "a token of the tests"
	local = "ip=127.0.0.1"
)

// operate sends a request with the token to the console, and wants a status.
func (s *server) operate(t *testing.T, line, body string, want int) string {
	t.Helper()
	r := s.send(t, line, body, "Authorization", "Bearer "+token, "Content-Type", "application/json")
	if r.status != want {
		t.Fatalf("%s: got %d and %s, want %d", line, r.status, r.body, want)
	}
	return r.body
}

// TestOverride: an account with an override has its own limit, and other accounts have the limit of their plan.
func TestOverride(t *testing.T) {
	backends(t, func(t *testing.T, args ...string) {
		s := start(t, append(args, "-admin-token", token)...)
		for account, limit := range map[string]string{"merchant-1": "10/1m", "merchant-2": "sliding-window-log 3/1h"} {
			s.operate(t, "PUT /admin/overrides/charges-merchant?key=usr="+account, `{"limit":"`+limit+`"}`, http.StatusNoContent)
		}
		for key, want := range map[string]string{
			"demo-free": `"charges-merchant";q=10;w=60`, "demo-pro": `"charges-merchant";q=3;w=3600`,
			"demo-enterprise": `"charges-merchant";q=500;w=6`,
		} {
			for _, field := range [][]string{{"X-API-Key", key}, {"Authorization", "Bearer " + key}} {
				if got := s.send(t, "POST /v1/charges", "", field...).header.Get("RateLimit-Policy"); got != want {
					t.Errorf("%s: got %q, want %q", key, got, want)
				}
			}
		}
	})
}

// TestConsole: an operator sees and changes the limits of a client. A client without the token may not.
func TestConsole(t *testing.T) {
	backends(t, func(t *testing.T, args ...string) {
		s := start(t, append(args, "-admin-token", token)...)
		for _, fields := range [][]string{nil, {"Authorization", "Bearer guess"}, {"Authorization", "Basic " + token}} {
			if r := s.send(t, "GET /admin/policies", "", fields...); r.status != http.StatusForbidden {
				t.Errorf("%q: got %d, want 403", fields, r.status)
			}
		}
		policies := s.operate(t, "GET /admin/policies", "", http.StatusOK)
		for _, want := range []string{`"name": "login"`, `"limit": "sliding-window-log 5/1m"`, `"name": "completions"`, `"enterprise"`} {
			if !strings.Contains(policies, want) {
				t.Errorf("got policies %s, want %s among them", policies, want)
			}
		}

		s.send(t, "GET /nothing", "")
		s.operate(t, "POST /admin/ban", `{"policy":"unmatched","key":"`+local+`"}`, http.StatusNoContent)
		if r := s.send(t, "GET /nothing", ""); r.status != http.StatusForbidden || !strings.Contains(r.body, "abnormal-usage-detected") {
			t.Errorf("banned: got %d and %s", r.status, r.body)
		}
		if got := s.operate(t, "GET /admin/who?ip=127.0.0.1", "", http.StatusOK); !strings.Contains(got, `"says": "unmatched denies ip=127.0.0.1 until an operator ends it: it is banned"`) {
			t.Errorf("got %s, want the ban", got)
		}
		s.operate(t, "POST /admin/unban", `{"policy":"unmatched","key":"`+local+`"}`, http.StatusOK)
		if r := s.send(t, "GET /nothing", ""); r.status != http.StatusNotFound {
			t.Errorf("forgiven: got %d, want 404", r.status)
		}
		s.operate(t, "PUT /admin/overrides/reports?key=*", `{"mode":"off"}`, http.StatusNoContent)
		if r := s.send(t, "GET /v1/reports", ""); r.status != http.StatusOK || r.limitFields() != nil {
			t.Errorf("switched off: got %d and %v, want no limit", r.status, r.limitFields())
		}
	})
}

// TestConsoles: an instance answers for the others, which deny clients that it has never met.
func TestConsoles(t *testing.T) {
	t.Parallel()
	other, addr := start(t, "-admin-token", token), freeAddr(t)
	s := start(t, "-admin-token", token, "-addr", addr, "-consoles", other.url+"/admin, http://"+addr+"/admin")
	other.operate(t, "POST /admin/ban", `{"policy":"unmatched","key":"`+local+`"}`, http.StatusNoContent)
	other.send(t, "GET /nothing", "")
	if got := s.operate(t, "GET /admin/denied?since=1h", "", http.StatusOK); !strings.Contains(got, `"denied": 1,`) || !strings.Contains(got, `"instances": 2`) {
		t.Errorf("got %s, want the client that the other instance denied", got)
	}
}

// TestConsoleLog: the log has the operator's changes.
func TestConsoleLog(t *testing.T) {
	t.Parallel()
	program, s := startProgram(t, "-admin-token", token)
	s.operate(t, "POST /admin/ban", `{"policy":"unmatched","key":"`+local+`"}`, http.StatusNoContent)
	s.says(t, "ratelimit: console: ban", 1)
	if err := errors.Join(program.Process.Signal(os.Interrupt), program.Wait()); err != nil {
		t.Error(err)
	}
}

// TestGuessedTokens: a client that guesses the token is banned. The right token passes, also from the same address.
func TestGuessedTokens(t *testing.T) {
	t.Parallel()
	s := start(t, "-admin-token", token)
	guess := func() reply { return s.send(t, "GET /admin/policies", "", "Authorization", "Bearer guess") }
	for i := range 20 {
		want := http.StatusForbidden
		if i >= 10 {
			want = http.StatusTooManyRequests
		}
		if r := guess(); r.status != want {
			t.Fatalf("guess %d: got %d, want %d", i, r.status, want)
		}
	}
	for r := guess(); !strings.Contains(r.body, "abnormal-usage-detected"); r = guess() { // bans begin a moment later
		if r.status != http.StatusTooManyRequests {
			t.Fatalf("got %d, want a denial", r.status)
		}
	}
	s.operate(t, "GET /admin/policies", "", http.StatusOK)
}

// TestNoConsole: without -admin-token there is no console.
func TestNoConsole(t *testing.T) {
	t.Parallel()
	if r := start(t).send(t, "GET /admin/policies", "", "Authorization", "Bearer "); r.status != http.StatusNotFound {
		t.Errorf("got %d, want 404", r.status)
	}
}
