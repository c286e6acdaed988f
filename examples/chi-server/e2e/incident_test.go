package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/internal/redistest"
)

// TestIncident: with Redis away, the status page begins with what operators must know, and puts trouble first.
func TestIncident(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	s := start(t, "-redis", "redis://"+redis.Addr(), "-admin-token", "0123456789abcdef")
	s.orders(t)
	p := open(t, s, "/status", desktop)
	summary := func() string { return eval[string](t, p, `document.querySelector(".summary").textContent`) }
	if got := summary(); !strings.Contains(got, "orders denied") || !strings.Contains(got, "one client received all denials over a limit: ip=#") || !strings.Contains(got, "Redis has been connected since the start") {
		t.Errorf("got %q before the incident", got)
	}
	if got := eval[string](t, p, `document.querySelector(".keys pre").textContent`); !strings.HasPrefix(got, `curl -H "Authorization: Bearer $TOKEN" http://`) || !strings.Contains(got, `/admin/ban -H `) {
		t.Errorf("got the command %q", got)
	}
	redis.Stop()
	redistest.Until(t, "the circuit is open", func() bool {
		response, err := http.Post(s.url+"/v1/login", "application/json", strings.NewReader(`{"user":"demo","password":"demo"}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return strings.Contains(s.get(t, "/status?format=json"), `"breaker":"open"`)
	})
	p = open(t, s, "/status", desktop)
	if got := summary(); !strings.Contains(got, "because it fails closed") || strings.Contains(got, "Redis") {
		t.Errorf("got %q in the incident", got)
	}
	for what, script := range map[string]string{
		"a red badge":                 `document.querySelector(".badge.bad").textContent.startsWith("Redis unavailable")`,
		"since when":                  `[...document.querySelectorAll(".troubles li")].every((li) => li.querySelector("time").dateTime)`,
		"the policy in trouble first": `document.querySelector("[aria-labelledby=policies] .name").textContent === "login"`,
		"idle policies folded":        `!document.querySelector("details.idle").open && !document.querySelector("details.idle table").checkVisibility()`,
		"drawings":                    `document.querySelectorAll("svg.spark rect.denied").length >= 3`,
		"the process":                 `/process \d+/.test(document.querySelector("header").textContent)`,
		"no script":                   `document.scripts.length === 0`,
	} {
		if !eval[bool](t, p, script) {
			t.Errorf("the page does not show %s", what)
		}
	}
	p.picture(t, "incident")
}
