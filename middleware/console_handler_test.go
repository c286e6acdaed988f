package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/overrides"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// authorized lets alice in.
func authorized(r *http.Request) (string, error) {
	if r.Header.Get("Authorization") != "Bearer sesame" {
		return "", errors.New("the token is wrong: hunter2")
	}
	return "alice", nil
}

// newConsole returns the handler of a console, and what it logs.
func newConsole(t *testing.T, limiter algorithms.Limiter, table ratelimit.Overrides) (http.Handler, *bytes.Buffer) {
	t.Helper()
	logged := new(bytes.Buffer)
	o := &ratelimit.Options{Overrides: table, Logger: slog.New(slog.NewTextHandler(logged, nil))}
	h, err := ratelimit.NewConsole(newMiddleware(t, limiter, o, plans())).Handler(authorized)
	if err != nil {
		t.Fatal(err)
	}
	return h, logged
}

// call sends alice's request.
func call(h http.Handler, method, target, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer sesame")
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	return record(h, r)
}

func TestConsoleHandler(t *testing.T) {
	const key = `"policy":"p","key":"ip=192.0.2.1"`
	h, logged := newConsole(t, newStill(t), overrides.NewMemory())
	for _, tt := range []struct {
		method, target, body string
		status               int
		want                 string // in the answer
		logged               string // in the log, of a change
	}{
		{"GET", "/policies", "", 200, `{"policies":[{"name":"p","limit":"token-bucket 10/1h","tiers":{"big":"token-bucket 20/1h","gold":"sliding-window-log 100/1h"},"candidate":"fixed-window 5/1h","fail":"local"}]}`, ""},
		{"HEAD", "/policies", "", 200, "", ""},
		{"GET", "/keys?policy=p&key=ip%3D192.0.2.1&tier=big", "", 200, `"reason":"tier","limits":[{"reason":"default","limit":"token-bucket 10/1h","in_force":false,"remaining":10,`, ""},
		{"PUT", "/overrides/p?key=*", `{"limit":"5/1m"}`, 204, "", `msg="ratelimit: console: override" who=alice policy=p key=* limit="token-bucket 5/1m" mode=on until="for good"`},
		{"PUT", "/overrides/*?key=*", `{"mode":"shadow"}`, 204, "", "policy=* key=*"},
		{"GET", "/overrides/*", "", 200, `{"*":{"mode":"shadow"}}`, ""},
		{"GET", "/policies", "", 200, `"everyone":{"limit":"token-bucket 5/1m"}`, ""},
		{"PUT", "/overrides/p?key=ip%3D192.0.2.1", `{"limit":"500/1m"}`, 204, "", `key="ip=192.0.2.1" limit="token-bucket 500/1m"`},
		{"GET", "/overrides/p?key=ip%3D192.0.2.1", "", 200, `{"limit":"token-bucket 500/1m"}`, ""},
		{"GET", "/overrides/p?key=ip%3D::1", "", 404, `"detail":"the key has no override of its own"`, ""},
		{"GET", "/keys?policy=p&key=ip%3D192.0.2.1", "", 200, `"denied":false,"reason":"override"`, ""},
		{"POST", "/unban", "{" + key + "}", 404, `not found`, ""},
		{"DELETE", "/overrides/p?key=ip%3D192.0.2.1", "", 204, "", "console: clear"},
		{"POST", "/ban", "{" + key + `,"until":"2099-01-01T00:00:00Z"}`, 204, "", "until=2099-01-01T00:00:00Z"},
		{"GET", "/keys?policy=p&key=ip%3D192.0.2.1", "", 200, `"mode":"banned","until":"2099-01-01T00:00:00Z"},"denied":true,"reason":"ban","clears_after":"`, ""},
		{"POST", "/unban", "{" + key + "}", 204, "", "console: unban"},
		{"POST", "/grant", "{" + key + `,"units":3}`, 204, "", "units=3"},
		{"POST", "/reset", "{" + key + "}", 204, "", "console: reset"},

		{"GET", "/", "", 404, `"title":"Not Found"`, ""},
		{"GET", "/secrets", "", 404, "", ""},
		{"DELETE", "/policies", "", 405, `"title":"Method Not Allowed"`, ""},
		{"GET", "/policies?all=1", "", 400, "parameter", ""},
		{"GET", "/keys?policy=p", "", 400, "lacks the parameter key", ""},
		{"GET", "/keys?policy=p&key=a&key=b", "", 400, "twice", ""},
		{"GET", "/keys?policy=q&key=a", "", 404, `policy \"q\": not found`, ""},
		{"GET", "/overrides/q", "", 404, "not found", ""},
		{"PUT", "/overrides/p", `{}`, 400, "lacks the parameter key", ""},
		{"DELETE", "/overrides/p?name=a", "", 400, "parameter", ""},
		{"PUT", "/overrides/p?key=a", `{"limit":"lots"}`, 400, `limit \"lots\"`, ""},
		{"PUT", "/overrides/p?key=a", `{"mode":"loud"}`, 400, `no mode \"loud\"`, ""},
		{"PUT", "/overrides/p?key=a", `{"mode":"off","why":"?"}`, 400, "one JSON object", ""},
		{"PUT", "/overrides/p?key=a", `{"mode":"off"} {}`, 400, "one JSON object", ""},
		{"PUT", "/overrides/p?key=a", ``, 400, "one JSON object", ""},
		{"PUT", "/overrides/p?key=a", `{"mode":"` + strings.Repeat("o", 9000), 413, "too long", ""},
		{"PUT", "/overrides/p?key=*", `{"mode":"banned"}`, 400, "a ban is of one key", ""},
		{"PUT", "/overrides/p?key=a", `null`, 400, "one JSON object", ""},
		{"POST", "/reset", `null`, 400, "one JSON object", ""},
		{"PUT", "/overrides/p?key=a&%zz", `{}`, 400, "the query", ""},
		{"DELETE", "/overrides/p?key=a;b", ``, 400, "the query", ""},
		{"GET", "/keys?policy=p&key=ip=::1&tier=%zz", "", 400, "the query", ""},
		{"POST", "/reset", "{" + key + `,"units":1}`, 400, "one JSON object", ""},
		{"POST", "/grant", "{" + key + `,"units":0}`, 400, "grant of 0 units", ""},
		{"POST", "/grant", "{" + key + `,"units":1.5}`, 400, "one JSON object", ""},
		{"POST", "/ban", "{" + key + `,"until":"2001-01-01T00:00:00Z"}`, 400, "has passed", ""},
	} {
		logged.Reset()
		w := call(h, tt.method, tt.target, tt.body)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s %.80s: got %d %s %s, want %d %s", tt.method, tt.target, tt.body, w.Code, dump(w.Header()), w.Body, tt.status, tt.want)
		}
		if got := logged.String(); (got != "") != (tt.logged != "") || !strings.Contains(got, tt.logged) {
			t.Errorf("%s %s %.80s: got log %q, want %q", tt.method, tt.target, tt.body, got, tt.logged)
		}
		kind, isJSON := w.Header().Get("Content-Type"), json.Valid(w.Body.Bytes())
		if w.Code >= 400 && (kind != "application/problem+json" || !isJSON) || w.Code == 200 && (kind != "application/json" || !isJSON && tt.method != "HEAD") {
			t.Errorf("%s %s: got %d as %s: %s", tt.method, tt.target, w.Code, kind, w.Body)
		}
	}
	if got := call(h, "PATCH", "/overrides/p", "").Header().Get("Allow"); got != "DELETE, GET, PUT, HEAD" {
		t.Errorf("got Allow %q", got)
	}
}

// Whoever is not let in sees and changes nothing, nor does a page of another site.
func TestConsoleHandlerRefuses(t *testing.T) {
	if _, err := ratelimit.NewConsole(newMiddleware(t, newStill(t), nil, plans())).Handler(nil); err == nil {
		t.Error("got no error without a function that authorizes")
	}
	table := overrides.NewMemory()
	h, logged := newConsole(t, newStill(t), table)
	ban := func(change func(*http.Request)) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/ban", strings.NewReader(`{"policy":"p","key":"ip=192.0.2.1"}`))
		r.Header.Set("Authorization", "Bearer sesame")
		r.Header.Set("Content-Type", "application/json")
		change(r)
		return record(h, r)
	}
	for _, tt := range []struct {
		name   string
		change func(r *http.Request)
		status int
	}{
		{"no token", func(r *http.Request) { r.Header.Del("Authorization") }, 403}, // the first refusal is logged
		{"another site", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		{"a form", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415},
		{"no type", func(r *http.Request) { r.Header.Del("Content-Type") }, 415},
	} {
		w := ban(tt.change)
		if _, found := table.Find("p", "ip=192.0.2.1"); w.Code != tt.status || found || strings.Contains(w.Body.String(), "hunter2") {
			t.Errorf("%s: got %d %s, banned: %t, want %d", tt.name, w.Code, w.Body, found, tt.status)
		}
	}
	if !strings.Contains(logged.String(), "hunter2") {
		t.Errorf("got log %s, want why nobody was let in", logged)
	}
	if w := record(h, httptest.NewRequest("GET", "/nowhere", nil)); w.Code != 403 {
		t.Errorf("got %d for a path that is not there, want 403", w.Code)
	}
}

// What goes wrong inside is logged, and not told.
func TestConsoleHandlerHidesErrors(t *testing.T) {
	secret := errors.New("dial tcp 10.1.2.3:6379")
	h, logged := newConsole(t, broken(secret), nil)
	w := call(h, "POST", "/reset", `{"policy":"p","key":"ip=192.0.2.1"}`)
	if w.Code != 503 || w.Body.String() != `{"type":"about:blank","title":"Service Unavailable","status":503}` || !strings.Contains(logged.String(), "10.1.2.3") {
		t.Errorf("got %d %s and log %s, want 503 that says nothing", w.Code, w.Body, logged)
	}
	if w := call(h, "POST", "/ban", `{"policy":"p","key":"ip=192.0.2.1"}`); w.Code != 409 {
		t.Errorf("got %d %s, want 409 without overrides", w.Code, w.Body)
	}
	h, _ = newConsole(t, newStill(t), full{overrides.NewMemory()})
	if w := call(h, "PUT", "/overrides/p?key=a", `{}`); w.Code != 409 {
		t.Errorf("got %d %s, want 409 when it is full", w.Code, w.Body)
	}
}

// full has no room.
type full struct{ *overrides.Memory }

func (full) Set(context.Context, string, string, overrides.Override) error { return overrides.ErrFull }

// An operator looks, bans for an hour, and lifts the ban.
func TestConsoleStory(t *testing.T) {
	ctx, table, store := context.Background(), overrides.NewMemory(), newStill(t)
	m := newMiddleware(t, store, &ratelimit.Options{Overrides: table, Logger: quiet}, byIP("p", hourly))
	c := ratelimit.NewConsole(m)
	if err := c.Ban(ctx, client, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	w := record(m.Handler(ok), from("192.0.2.1"))
	if w.Code != 429 || w.Header().Get("Retry-After") != "3600" {
		t.Errorf("got %d %s, want 429 for an hour", w.Code, dump(w.Header()))
	}
	if err := c.Unban(ctx, client); err != nil {
		t.Fatal(err)
	}
	if got := left(t, store, byIP("p", hourly), client.Key); got != 10 {
		t.Errorf("got %d left, want 10: a ban charges nothing", got)
	}
}
