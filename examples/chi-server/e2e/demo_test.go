package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// ready is true when the page has played its burst, and has its story and its comparison.
const ready = `document.documentElement.dataset.played && document.getElementById("story").dataset.told && document.querySelectorAll("#results tbody tr").length === 7`

// sent is true when each request has its answer.
const sent = `document.getElementById("summary").textContent !== "" && document.getElementById("stop").ariaDisabled === "true"`

// TestBurst: the page, the API's answers and the server's metrics have the same counts.
func TestBurst(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := openDemo(t, s, desktop)
	p.send(t, "burst-send")
	allowed, denied := p.number(t, "allowed"), p.number(t, "denied")
	answered := p.answers("429: " + s.url + "/v1/orders/1")
	if allowed+denied != 15 || allowed < 10 || denied != answered || p.number(t, "other") != 0 {
		t.Errorf("got %d allowed and %d denied, want 15 in all, 10 or more allowed, and %d denied", allowed, denied, answered)
	}
	for outcome, want := range map[string]int{"allowed": allowed, "denied": denied} {
		line := fmt.Sprintf("ratelimit_requests_total{outcome=%q,policy=\"orders\",tier=\"\"} %d\n", outcome, want)
		if metrics := s.get(t, "/metrics"); !strings.Contains(metrics, line) {
			t.Errorf("got metrics without %s", line)
		}
	}
	if got := p.text(t, "summary"); !strings.Contains(got, fmt.Sprintf("%d allowed, %d denied.", allowed, denied)) {
		t.Errorf("got the summary %q", got)
	}
	names := eval[[]string](t, p, `[...document.querySelectorAll("#fields tbody tr")].filter((r) => r.cells[2].textContent).map((r) => r.cells[0].textContent)`)
	want := []string{
		"RateLimit-Policy", "RateLimit", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After", "Cache-Control", "Content-Type",
	}
	if !slices.Equal(names, want) {
		t.Errorf("got %q explained, want all fields of a denial: %q", names, want)
	}
	p.picture(t, "burst-desktop")
}

// TestKeys: the page sends the chosen API key.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := openDemo(t, s, phone)
	p.set(t, "target", "7") // to create a charge
	for key, want := range map[string]string{"": "401 Unauthorized", "guess": "401 Unauthorized", "demo-pro": "200 OK"} {
		p.set(t, "key", key)
		before := p.number(t, "allowed") + p.number(t, "other")
		p.click(t, "one")
		p.until(t, fmt.Sprintf(`Number(document.getElementById("allowed").textContent) + Number(document.getElementById("other").textContent) === %d`, before+1))
		if got := p.text(t, "status-line"); got != "POST /v1/charges → "+want {
			t.Errorf("key %q: got %q, want %s", key, got, want)
		}
		p.until(t, `document.getElementById("one").ariaDisabled === "false"`)
	}
}

// TestStop: after Stop, the page sends no more requests.
func TestStop(t *testing.T) {
	t.Parallel()
	p := openDemo(t, start(t), desktop)
	p.set(t, "count", "1000")
	p.set(t, "pace", "1")
	p.click(t, "burst-send")
	p.until(t, `document.getElementById("allowed").textContent !== "0"`)
	p.send(t, "stop")
	if n := p.number(t, "allowed") + p.number(t, "denied"); n > 100 {
		t.Errorf("got %d of 1000 sent, want a few", n)
	}
}

// TestCountdown: the countdown begins with a denial. At its end a request is allowed.
func TestCountdown(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := openDemo(t, s, phone)
	// The page itself records the countdown, because it may end before the test looks.
	eval[bool](t, p, `(() => {
		const countdown = document.getElementById("countdown");
		window.shown = [];
		new MutationObserver(() => window.shown.push(countdown.textContent)).observe(countdown, { childList: true, characterData: true, subtree: true });
		return true;
	})()`)
	p.set(t, "count", "30")
	p.send(t, "burst-send")
	p.picture(t, "countdown-phone")
	p.until(t, `document.getElementById("countdown").textContent === "now"`)
	shown := eval[[]string](t, p, "window.shown")
	if !slices.Contains(shown, "1 s") || shown[len(shown)-1] != "now" {
		t.Errorf("got %q, want it to count down to now", shown)
	}
	before := p.number(t, "allowed")
	p.click(t, "one")
	p.until(t, fmt.Sprintf(`document.getElementById("allowed").textContent === "%d"`, before+1))
}

// TestComparison: the page shows the numbers of the server. A fixed window admits twice its limit.
func TestComparison(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := openFirst(t, s, desktop)
	for traffic, sent := range map[string]int{"steady": 20, "overload": 40, "turn": 20} {
		p.do(t, traffic, chromedp.Click(fmt.Sprintf("input[value=%q]", traffic)))
		p.until(t, fmt.Sprintf(`document.getElementById("results").dataset.traffic === %q && document.getElementById("results").dataset.sent === "%d"`, traffic, sent))
		query := eval[string](t, p, `performance.getEntriesByType("resource").map((r) => r.name).filter((n) => n.includes("/demo/compare") && n.split("limit=").length === 8).at(-1).split(location.host)[1]`)
		var want struct {
			Results []struct {
				Algorithm string
				Allowed   []bool
				Served    []float64 `json:"served_ms"`
				Fullest   int
			}
		}
		if err := json.Unmarshal([]byte(s.get(t, query)), &want); err != nil || len(want.Results) != 7 {
			t.Fatalf("%s: got %d results and %v, want seven", traffic, len(want.Results), err)
		}
		for _, r := range want.Results {
			got := eval[[]string](t, p, fmt.Sprintf(`[...document.querySelectorAll("tr[data-algorithm=%s] td:nth-child(n+3)")].map((c) => c.childNodes[1].textContent)`, r.Algorithm))
			if want := []string{fmt.Sprint(len(r.Served)), fmt.Sprint(len(r.Allowed) - len(r.Served)), fmt.Sprint(r.Fullest)}; !slices.Equal(got, want) {
				t.Errorf("%s: %s: got %q, want %q", traffic, r.Algorithm, got, want)
			}
			if traffic == "turn" && r.Algorithm == "fixed-window" && r.Fullest != 20 || r.Algorithm == "sliding-window-log" && r.Fullest > 10 {
				t.Errorf("%s: %s: got %d in a minute, of a limit of 10", traffic, r.Algorithm, r.Fullest)
			}
		}
	}
	promises := eval[[]string](t, p, `[...document.querySelectorAll("#results .most small")].map((s) => s.textContent)`)
	if want := []string{"up to 19", "up to 10", "about 10, up to 19", "up to 10", "up to 20", "up to 20, around midnight", "no bound"}; !slices.Equal(promises, want) {
		t.Errorf("got %q, want %q", promises, want)
	}
}

// TestKeyboard: a visitor can reach and use the main form without a mouse, and sees the focus.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := openDemo(t, s, desktop)
	p.do(t, "the start", chromedp.Focus("#live"))
	var reached []string
	for range 20 {
		p.do(t, "tab", chromedp.KeyEvent(kb.Tab))
		id := eval[string](t, p, "document.activeElement.id")
		if id == "" {
			continue
		}
		reached = append(reached, id)
		if got := eval[string](t, p, "getComputedStyle(document.activeElement).outlineStyle"); got == "none" {
			t.Errorf("%s: got no outline, want it to be seen", id)
		}
		switch id {
		case "target":
			p.do(t, "the fourth route", chromedp.KeyEvent(kb.ArrowDown+kb.ArrowDown+kb.ArrowDown))
		case "count":
			p.do(t, "a number", chromedp.KeyEvent("7")) // the old value is selected
		}
		if id == "count" {
			p.do(t, "send", chromedp.KeyEvent(kb.Enter))
			break
		}
	}
	if want := []string{"burst-send", "one", "stop", "target", "key", "count"}; !slices.Equal(reached, want) {
		t.Fatalf("got to %q, want %q", reached, want)
	}
	p.until(t, sent)
	if got := p.text(t, "allowed"); got != "7" {
		t.Errorf("got %s reports allowed, want 7", got)
	}
	if got := p.text(t, "status-line"); got != "GET /v1/reports → 200 OK" {
		t.Errorf("got %q, want the route that was chosen", got)
	}
	p.picture(t, "keyboard")
}
