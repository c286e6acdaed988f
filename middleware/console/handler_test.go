// Tests of the console over HTTP.

package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
	"github.com/penstock-go/penstock/middleware/overrides"
)

func TestHandler(t *testing.T) {
	const key = `"policy":"p","key":"usr=42"`
	h, logged := newHandler(t, newStill(), overrides.NewMemory(), plans())
	for _, tt := range []struct {
		method, target, body string
		status               int
		want                 string // in the answer
		logged               string // in the log of a change
	}{
		{"GET", "/policies", "", 200, `{"policies":[{"name":"p","keys":"usr","limit":"token-bucket 10/1h","tiers":{"big":"token-bucket 20/1h","gold":"sliding-window-log 100/1h"},"candidate":"fixed-window 5/1h","fail":"local"}]}`, ""},
		{"HEAD", "/policies", "", 200, "", ""},
		{"PUT", "/overrides/p?key=*", `{"limit":"5/1m"}`, 204, "", `msg="ratelimit: console: override" who=alice policy=p key=* limit="token-bucket 5/1m" mode=on until=never`},
		{"PUT", "/overrides/*?key=*", `{"mode":"shadow"}`, 204, "", "policy=* key=*"},
		{"GET", "/overrides/*", "", 200, `{"*":{"mode":"shadow","since":"`, ""},
		{"GET", "/policies", "", 200, `"everyone":{"limit":"token-bucket 5/1m","since":"`, ""},
		{"PUT", "/overrides/p?key=usr%3D42", `{"limit":"500/1m"}`, 204, "", `key="usr=42" limit="token-bucket 500/1m"`},
		{"GET", "/overrides/p?key=usr%3D42", "", 200, `{"limit":"token-bucket 500/1m","since":"`, ""},
		{"GET", "/overrides/p?key=usr%3D7", "", 404, `"detail":"the key has no override of its own"`, ""},
		{"GET", "/who?key=usr%3D42", "", 200, `"verdict":"admitted","reason":"override","limits":[{"from":"override","limit":"token-bucket 500/1m","remaining":500,`, ""},
		{"GET", "/who?usr=42", "", 200, `"override_set_for":["p","usr=42"]`, ""},
		{"POST", "/unban", "{" + key + "}", 404, `not found`, "lifted=0"},
		{"DELETE", "/overrides/p?key=usr%3D42", "", 204, "", "console: clear"},
		{"POST", "/ban", "{" + key + `,"until":"2099-01-01T00:00:00Z"}`, 204, "", "until=2099-01-01T00:00:00Z"},
		{"GET", "/who?usr=42", "", 200, `"verdict":"denied","reason":"ban","clears_after":"`, ""},
		{"GET", "/overrides?since=1h", "", 200, `{"*":{"*":{"mode":"shadow","since":"`, ""},
		{"GET", "/overrides/p?key=usr%3D42", "", 200, `"by":"alice"`, ""},
		{"POST", "/reset", "{" + key + "}", 409, `still banned in policy \"p\" since `, "units=0"},
		{"POST", "/unban", "{" + key + "}", 200, `{"lifted":[{"policy":"p","key":"usr=42","override":{"mode":"banned","until":"2099-01-01T00:00:00Z","since":"`, "console: unban"},
		{"POST", "/unban", "{" + key + "}", 404, "not found", "lifted=0"},
		{"DELETE", "/overrides/p?key=*", "", 204, "", "console: clear"},
		{"POST", "/grant", "{" + key + `,"units":3}`, 404, "no units of the key are in use", "units=0"},
		{"POST", "/reset", "{" + key + "}", 404, "no units of the key are in use", "units=0"},
		{"POST", "/ban", `{"policy":"*","key":"usr=42"}`, 204, "", "until=never"},
		{"POST", "/unban", "{" + key + "}", 409, `still banned in all policies (*) since `, "lifted=0"},
		{"POST", "/unban", `{"policy":"*","key":"usr=42"}`, 200, `{"lifted":[{"policy":"*","key":"usr=42",`, "console: unban"},

		{"GET", "/", "", 404, `"title":"Not Found"`, ""},
		{"GET", "/secrets", "", 404, "", ""},
		{"DELETE", "/policies", "", 405, `"title":"Method Not Allowed"`, ""},
		{"GET", "/policies?all=1", "", 400, "parameter", ""},
		{"GET", "/who", "", 400, "want usr=ACCOUNT, ip=ADDRESS or key=TEXT", ""},
		{"GET", "/who?usr=", "", 400, "usr is empty", ""},
		{"GET", "/who?usr=1&id=2", "", 400, "want usr=ACCOUNT", ""},
		{"GET", "/who?ip=example.com", "", 400, "neither an address", ""},
		{"GET", "/who?ip=192.0.2.1", "", 400, "no policy has a key of this client; p counts usr", ""},
		{"GET", "/who?usr=%230123456789abcdef", "", 404, "ask the instance that shows it", ""},
		{"GET", "/denied?since=1h", "", 200, `{"clients":[]}`, ""},
		{"GET", "/denied?since=noon", "", 400, "neither an instant", ""},
		{"DELETE", "/overrides", "", 400, "want since=", ""},
		{"GET", "/overrides/p?key=usr=1&key=usr=2", "", 400, "twice", ""},
		{"GET", "/overrides/q", "", 404, "not found", ""},
		{"PUT", "/overrides/p", `{}`, 400, "exactly one of key, account (usr) and address (ip)", ""},
		{"DELETE", "/overrides/p?name=a", "", 400, "parameter", ""},
		{"PUT", "/overrides/p?key=usr=1", `{"limit":"lots"}`, 400, `limit \"lots\"`, ""},
		{"PUT", "/overrides/p?key=usr=1", `{"mode":"loud"}`, 400, `\"loud\" is not a mode`, ""},
		{"PUT", "/overrides/p?key=usr=1", `{"mode":"off","why":"?"}`, 400, `the request has no field \"why\"`, ""},
		{"PUT", "/overrides/p?key=usr=1", `{"mode":7}`, 400, `the field \"mode\" has the wrong type: number`, ""},
		{"PUT", "/overrides/p?key=usr=1", `{"until":"1h"}`, 400, `the field \"until\" is \"1h\": want an instant`, ""},
		{"PUT", "/overrides/p?key=usr=1", `{"for":60}`, 400, `the field \"for\" has the wrong type: number`, ""},
		{"PUT", "/overrides/p?key=usr=1", `{"for":"-1h"}`, 400, `the field \"for\" is \"-1h\": want a time such as 1h`, ""},
		{"PUT", "/overrides/p?key=usr=1", `{"for":"1h","until":"2099-01-01T00:00:00Z"}`, 400, "cannot be combined", ""},
		{"PUT", "/overrides/p?key=usr=1", `{"mode":"off"} {}`, 400, "one JSON object", ""},
		{"PUT", "/overrides/p?key=usr=1", ``, 400, "one JSON object", ""},
		{"PUT", "/overrides/p?key=usr=1", `{"mode":"` + strings.Repeat("o", 9000), 413, "too long", ""},
		{"PUT", "/overrides/p?key=*", `{"mode":"banned"}`, 400, "a ban is for one key", ""},
		{"PUT", "/overrides/*?key=usr=1", `{"mode":"off"}`, 204, "", `msg="ratelimit: console: override" who=alice policy=*`},
		{"PUT", "/overrides/*?key=usr=1|rt=a", `{"mode":"off"}`, 400, "its keys are usr", ""},
		{"PUT", "/overrides/*?ip=192.0.2.1", `{"mode":"off"}`, 400, "it counts no addresses, but usr", ""},
		{"POST", "/reset", `{"policy":"p","key":"*"}`, 400, "not a client", ""},
		{"PUT", "/overrides/p?key=usr=1", `null`, 400, "one JSON object", ""},
		{"POST", "/reset", `null`, 400, "one JSON object", ""},
		{"PUT", "/overrides/p?key=usr=1&%zz", `{}`, 400, "the query", ""},
		{"DELETE", "/overrides/p?key=usr=1;b", ``, 400, "the query", ""},
		{"GET", "/who?usr=7&ip=%zz", "", 400, "the query", ""},
		{"POST", "/reset", "{" + key + `,"units":1}`, 400, `the request has no field \"units\"`, ""},
		{"POST", "/grant", "{" + key + `,"units":0}`, 400, "grant of 0 units", ""},
		{"POST", "/grant", "{" + key + `,"units":1.5}`, 400, `the field \"units\" has the wrong type: number 1.5`, ""},
		{"POST", "/ban", "{" + key + `,"until":"2001-01-01T00:00:00Z"}`, 400, "has passed", ""},
	} {
		logged.Reset()
		w := call(h, tt.method, tt.target, tt.body)
		if w.Code != tt.status || !strings.Contains(compact(w.Body.Bytes()), tt.want) || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s %.80s: got %d %s %s, want %d %s", tt.method, tt.target, tt.body, w.Code, w.Header(), w.Body, tt.status, tt.want)
		}
		if got := logged.String(); (got != "") != (tt.logged != "") || !strings.Contains(got, tt.logged) {
			t.Errorf("%s %s %.80s: got log %q, want %q", tt.method, tt.target, tt.body, got, tt.logged)
		}
		kind, isJSON := w.Header().Get("Content-Type"), json.Valid(w.Body.Bytes())
		if w.Code >= 400 && (kind != "application/problem+json" || !isJSON) || w.Code == 200 && (kind != "application/json" || !isJSON && tt.method != "HEAD") {
			t.Errorf("%s %s: got %d as %s: %s", tt.method, tt.target, w.Code, kind, w.Body)
		}
	}
	if got := call(h, "PATCH", "/overrides/p", "").Header().Get("Allow"); got != "DELETE, GET, HEAD, PUT" {
		t.Errorf("got Allow %q", got)
	}
}

// Intruders see and change nothing. Pages of other sites change nothing.
func TestHandlerRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if _, err := console.New().Handler(nil); err == nil {
			t.Error("got no error without a function that authorizes")
		}
		table := overrides.NewMemory()
		h, logged := newHandler(t, newStill(), table, plans())
		ban := func(change func(*http.Request)) *httptest.ResponseRecorder {
			r := httptest.NewRequest("POST", "/ban", strings.NewReader(`{"policy":"p","key":"usr=42"}`))
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
			if _, found := table.Find("p", "usr=42"); w.Code != tt.status || found || strings.Contains(w.Body.String(), "hunter2") {
				t.Errorf("%s: got %d %s, banned: %t, want %d", tt.name, w.Code, w.Body, found, tt.status)
			}
		}
		synctest.Wait() // for the goroutine of the log
		if log := logged.String(); !strings.Contains(log, "hunter2") || strings.Count(log, "\n") != 1 {
			t.Errorf("got log %s, want the reason of the refusal, once", log)
		}
		time.Sleep(10 * time.Second)
		if w := record(h, httptest.NewRequest("GET", "/nowhere", nil)); w.Code != 403 {
			t.Errorf("got %d for an unknown path, want 403", w.Code)
		}
		synctest.Wait()
		if log := logged.String(); !strings.Contains(log, "suppressed=1") || strings.Count(log, "\n") != 2 {
			t.Errorf("got log %s, want a second line that counts the refusal between the two", log)
		}
	})
}

// Answers do not contain errors of the service. The log does.
func TestHandlerHidesErrors(t *testing.T) {
	secret := errors.New("dial tcp 10.1.2.3:6379")
	h, logged := newHandler(t, broken{secret}, nil, plans())
	w := call(h, "POST", "/reset", `{"policy":"p","key":"usr=42"}`)
	if w.Code != 503 || strings.TrimSpace(w.Body.String()) != `{"type":"about:blank","title":"Service Unavailable","status":503}` || !strings.Contains(logged.String(), "10.1.2.3") {
		t.Errorf("got %d %s and log %s, want 503 without details", w.Code, w.Body, logged)
	}
	if w := call(h, "POST", "/ban", `{"policy":"p","key":"usr=42"}`); w.Code != 409 {
		t.Errorf("got %d %s, want 409 without overrides", w.Code, w.Body)
	}
	h, _ = newHandler(t, newStill(), full{overrides.NewMemory()}, plans())
	if w := call(h, "PUT", "/overrides/p?key=usr=1", `{}`); w.Code != 409 {
		t.Errorf("got %d %s, want 409 for a full table", w.Code, w.Body)
	}
}

// full is a table without room.
type full struct{ *overrides.Memory }

func (full) Set(context.Context, string, string, ratelimit.Override) error { return overrides.ErrFull }

// A ban sets Retry-After, and charges nothing.
func TestBanForAnHour(t *testing.T) {
	table := overrides.NewMemory()
	m := newMiddleware(t, newStill(), table, byUser("p", hourly))
	c := console.New(m)
	if err := c.Ban(ctx, client, time.Now().Add(time.Hour), ""); err != nil {
		t.Fatal(err)
	}
	w := record(m.Handler(http.NotFoundHandler()), asUser("42", ""))
	if w.Code != 429 || w.Header().Get("Retry-After") != "3600" {
		t.Errorf("got %d %s, want 429 for an hour", w.Code, w.Header())
	}
	if _, err := c.Unban(ctx, client); err != nil {
		t.Fatal(err)
	}
	if got := who(t, c, client)[0].Limits[0].Remaining; got != 10 {
		t.Errorf("got %d, want 10: a ban charges nothing", got)
	}
}

// TestHandlerNeverRedirects: a redirect of the console's mux would lead outside of the prefix that StripPrefix removes.
func TestHandlerNeverRedirects(t *testing.T) {
	h, _ := newHandler(t, newStill(), overrides.NewMemory(), plans())
	mounted := http.StripPrefix("/admin", h)
	for _, path := range []string{
		"/admin", "/admin/", "/admin//", "/admin//policies", "/admin/./policies", "/admin/who/../policies", "/admin/policies/",
		"/admin//evil.example/policies", "/admin/%2e%2e/policies", "/admin/overrides//p", "/admin/overrides/",
	} {
		for _, method := range []string{"GET", "POST", "CONNECT"} {
			if w := call(mounted, method, path, ""); w.Code != http.StatusNotFound || w.Header().Get("Location") != "" {
				t.Errorf("%s %s: got %d to %q, want 404", method, path, w.Code, w.Header().Get("Location"))
			}
		}
	}
	if w := call(mounted, "GET", "/admin/policies", ""); w.Code != http.StatusOK {
		t.Errorf("/admin/policies: got %d, want 200", w.Code)
	}
}

// "for" ends an override or a ban so long after the request, and never earlier.
func TestHandlerFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(400 * time.Millisecond)
		table := overrides.NewMemory()
		h, _ := newHandler(t, newStill(), table, plans())
		for target, body := range map[string]string{
			"/overrides/p?key=usr%3D42": `{"limit":"5/1m","for":"1h"}`,
			"/ban":                      `{"policy":"p","key":"usr=7","for":"1h"}`,
		} {
			method := "PUT"
			if target == "/ban" {
				method = "POST"
			}
			if w := call(h, method, target, body); w.Code != 204 {
				t.Fatalf("%s: got %d %s", target, w.Code, w.Body)
			}
		}
		for _, key := range []string{"usr=42", "usr=7"} {
			o, found := table.Find("p", key)
			if left := time.Until(o.Until); !found || left < time.Hour || left >= time.Hour+time.Second {
				t.Errorf("%s: got an end in %v, want one in an hour, rounded up to a second", key, left)
			}
		}
		time.Sleep(time.Hour)
		if _, found := table.Find("p", "usr=42"); !found {
			t.Error("the override ended early")
		}
		time.Sleep(time.Second)
		if o, found := table.Find("p", "usr=42"); found {
			t.Errorf("after its end: got %+v", o)
		}
	})
}

// What GET shows of an override can be PUT back.
func TestHandlerPutsWhatItShows(t *testing.T) {
	table := overrides.NewMemory()
	h, _ := newHandler(t, newStill(), table, plans())
	call(h, "PUT", "/overrides/p?key=usr%3D42", `{"limit":"5/1m","for":"1h"}`)
	before, _ := table.Find("p", "usr=42")
	shown := call(h, "GET", "/overrides/p?key=usr%3D42", "").Body.String()
	if w := call(h, "PUT", "/overrides/p?key=usr%3D42", shown); w.Code != 204 {
		t.Fatalf("%s: got %d %s", shown, w.Code, w.Body)
	}
	if after, _ := table.Find("p", "usr=42"); after.Limit != before.Limit || !after.Until.Equal(before.Until) {
		t.Errorf("got %+v, want %+v", after, before)
	}
}

// A raise without the name of the algorithm would be another limit, which starts full.
func TestRaiseNamesTheAlgorithm(t *testing.T) {
	h, _ := newHandler(t, newStill(), overrides.NewMemory(), byUser("month", algorithms.PerMonth(20, nil)), byUser("bucket", hourly))
	for body, want := range map[string]int{
		`{"limit":"30/1d"}`: 400, `{"limit":"calendar-window 30/month"}`: 204, `{"limit":"token-bucket 30/1d"}`: 204, `{"limit":"30/month"}`: 400,
	} {
		if w := call(h, "PUT", "/overrides/month?key=usr=1", body); w.Code != want || want == 400 && !strings.Contains(w.Body.String(), "calendar-window") {
			t.Errorf("%s: got %d %s, want %d", body, w.Code, w.Body, want)
		}
	}
	if w := call(h, "PUT", "/overrides/bucket?key=usr=1", `{"limit":"30/1d"}`); w.Code != 204 {
		t.Errorf("a bucket: got %d %s", w.Code, w.Body)
	}
}
