// Tests of the page's formats and its HTML.

package statuspage_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
	"github.com/penstock-go/penstock/middleware/statuspage"
)

func TestFormats(t *testing.T) {
	page := statuspage.New(nil)
	const html, asJSON, text = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"
	for _, tt := range []struct {
		method, query string
		status        int
		kind, says    string
	}{
		{"GET", "", 200, html, "<!DOCTYPE html>"},
		{"GET", "?format=html", 200, html, "<!DOCTYPE html>"},
		{"GET", "?format=json", 200, asJSON, `"policies":[]`},
		{"GET", "?format=xml", 400, text, `the format is "xml": want html or json`},
		{"GET", "?format=JSON", 400, text, `the format is "JSON": want html or json`},
		{"HEAD", "", 200, html, ""},
		{"HEAD", "?format=json", 200, asJSON, ""},
		{"POST", "", 405, text, `the method is "POST": want GET or HEAD`},
		{"OPTIONS", "?format=json", 405, text, `the method is "OPTIONS": want GET or HEAD`},
	} {
		r := httptest.NewRequest(tt.method, "/"+tt.query, nil)
		r.Header.Set("Accept", "application/json, text/html;q=0.1") // selects nothing
		w := record(page, r)
		h := w.Header()
		if w.Code != tt.status || h.Get("Content-Type") != tt.kind || !strings.Contains(w.Body.String(), tt.says) {
			t.Errorf("%+v: got %d, %v: %s", tt, w.Code, h, w.Body)
		}
		if h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Vary") != "" {
			t.Errorf("%+v: got %v, want no-store, nosniff, and no Vary", tt, h)
		}
		if allow := h.Get("Allow"); (tt.status == 405) != (allow == "GET, HEAD") {
			t.Errorf("%+v: got Allow %q", tt, allow)
		}
	}
}

// TestIgnoredLimit: the page does not show a limit of everyone that requests ignore as if it held.
func TestIgnoredLimit(t *testing.T) {
	page, table := statuspage.New(nil), overrides.NewMemory()
	login := byIP("login", hourly)
	login.ChargeIf = func(int) bool { return true }
	shownOn(t, page, algorithms.NewMemory(nil), ratelimit.Options{Overrides: table}, login)
	if err := table.Set(t.Context(), "login", ratelimit.Everyone, ratelimit.Override{Limit: algorithms.LeakyBucket(500, time.Second)}); err != nil {
		t.Fatal(err)
	}
	html := record(page, httptest.NewRequest("GET", "/", nil)).Body.String()
	if !strings.Contains(html, "everyone: leaky-bucket 500/1s, ignored") {
		t.Errorf("got a page that does not say that requests ignore the limit:\n%s", html)
	}
}

// TestMarkup: the page is well-formed, loads nothing, and contains no markup of clients.
func TestMarkup(t *testing.T) {
	const attack = `<script>alert(1)</script>`
	page, table := statuspage.New(nil), overrides.NewMemory()
	tenant := keyfunc.APIKey("X-API-Key", func(_ context.Context, key string) (keyfunc.Identity, error) { return keyfunc.Identity{ID: key}, nil })
	m := shownOn(t, page, algorithms.NewMemory(nil), ratelimit.Options{LimiterName: attack, Overrides: table, PlainKeys: true}, ratelimit.Policy{
		Name: "p", Key: keyfunc.Join(tenant, keyfunc.Header("X-Tenant")), Limit: algorithms.TokenBucket(1, time.Hour),
		Tiers: map[string]algorithms.Limit{attack: hourly},
	})
	if err := table.Set(t.Context(), "p", ratelimit.Everyone, ratelimit.Override{Limit: algorithms.TokenBucket(2, time.Hour)}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		r := from("192.0.2.1")
		r.Header.Set("X-API-Key", "key-of-a-client")
		r.Header.Set("X-Tenant", attack)
		record(m.Handler(ok), r)
	}
	w := record(page, httptest.NewRequest("GET", "/?reload=10", nil))
	html := w.Body.String()
	const escaped = "&lt;script&gt;alert(1)&lt;/script&gt;"
	if strings.Contains(html, "<script") || strings.Count(html, escaped) != 3 || !strings.Contains(html, "hdr.x-tenant="+escaped) {
		t.Errorf("the attack is not escaped, or not shown as key, tier and limiter:\n%s", html)
	}
	if !strings.Contains(html, "everyone: token-bucket 2/1h") {
		t.Errorf("the page does not show the override of everyone:\n%s", html)
	}
	for _, link := range regexp.MustCompile(`(?:href|src|action|url\()=?"?([^"\s)]*)`).FindAllStringSubmatch(html, -1) {
		if !strings.HasPrefix(link[1], "?") && link[1] != "data:," && !strings.HasSuffix(link[1], "/RUNBOOK.md") { // data is an empty icon, or browsers ask for /favicon.ico
			t.Errorf("the page refers to %q", link[1])
		}
	}
	if !strings.Contains(html, `<meta http-equiv="refresh" content="10">`) {
		t.Error("the page does not reload every 10 s")
	}
	style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(html)
	sum := sha256.Sum256([]byte(style[1]))
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	if got := w.Header().Get("Content-Security-Policy"); got != want || strings.Contains(html, "style=") {
		t.Errorf("got %q, want %q, and no style elsewhere", got, want)
	}
	wellFormed(t, html)
}

func wellFormed(t *testing.T, html string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(html))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestEmptyPage: a page without Middlewares says how to add one.
func TestEmptyPage(t *testing.T) {
	html := record(statuspage.New(nil), httptest.NewRequest("GET", "/", nil)).Body.String()
	for _, says := range []string{"Healthy", "No Middleware is registered", "No key was denied", "Reload every 10 s"} {
		if !strings.Contains(html, says) {
			t.Errorf("the empty page does not say %q", says)
		}
	}
	wellFormed(t, html)
}
