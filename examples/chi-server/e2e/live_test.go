// Tests of what the live page claims to know.

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const notKnown = "Units left: not known yet"

// TestUnknownGauge: before an answer, the gauge shows neither a full limit nor the limit of another route.
func TestUnknownGauge(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.orders(t) // an earlier visit has used all units
	p := openDemo(t, s, desktop)
	gauge := func(what string) {
		t.Helper()
		const state = `[document.getElementById("tank").ariaValueText, document.getElementById("water").style.transform, document.getElementById("units").style.backgroundSize].join("; ")`
		p.until(t, state+` === "not known; scaleX(0); 100% 100%"`)
		if left, next := p.text(t, "left"), p.text(t, "countdown"); left != notKnown || next != "–" {
			t.Errorf("%s: got %q and the next try %q, want %q and none", what, left, next, notKnown)
		}
	}
	gauge("a new page")
	p.send(t, "one")
	p.until(t, `/^about \d+ of 10 left$/.test(document.getElementById("left").textContent)`) // some have come back
	p.set(t, "target", "7")
	gauge("another route")
	p.set(t, "target", "0")
	gauge("the first route again")
}

// TestAnswersOfTheApplication: a wrong password is allowed by the limiter, and the page counts it as the server does.
func TestAnswersOfTheApplication(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := openDemo(t, s, desktop)
	eval[bool](t, p, `(() => {
		window.drawn = [];
		const stroke = CanvasRenderingContext2D.prototype.stroke;
		CanvasRenderingContext2D.prototype.stroke = function (...path) { window.drawn.push(this.strokeStyle); return stroke.apply(this, path); };
		return true;
	})()`)
	p.set(t, "target", "4") // to log in with a wrong password
	p.send(t, "burst-send")
	if allowed, denied, other := p.number(t, "allowed"), p.number(t, "denied"), p.number(t, "other"); allowed != 5 || denied != 10 || other != 0 {
		t.Errorf("got %d allowed, %d denied, %d other, want 5, 10 and 0", allowed, denied, other)
	}
	if got := p.text(t, "summary"); !strings.Contains(got, "The application answered 5 of the allowed requests with 401.") {
		t.Errorf("got the summary %q", got)
	}
	metrics := s.get(t, "/metrics")
	for _, line := range []string{`{outcome="allowed",policy="login",tier=""} 5`, `{outcome="denied",policy="login",tier=""} 10`} {
		if !strings.Contains(metrics, line) {
			t.Errorf("the server does not count %s", line)
		}
	}
	p.until(t, `window.drawn.includes("#0b6480")`) // hollow marks among the allowed requests
	p.picture(t, "login-wrong")

	p.set(t, "target", "7")
	p.set(t, "key", "")
	p.send(t, "one")
	if other := p.number(t, "other"); other != 1 {
		t.Errorf("got %d others, want the 401 of the limiter", other)
	}
	p.until(t, `window.drawn.includes("#50615d")`)
}

// TestKeyOfARoute: the page chooses a key for a route that needs one, and keeps the visitor's choice.
func TestKeyOfARoute(t *testing.T) {
	t.Parallel()
	p := openDemo(t, start(t), phone)
	key := func(target, want string) {
		t.Helper()
		p.set(t, "target", target)
		if got := eval[string](t, p, `document.getElementById("key").value`); got != want {
			t.Errorf("target %s: got the key %q, want %q", target, got, want)
		}
	}
	key("0", "")
	key("7", "demo-free")
	p.send(t, "one")
	if got := p.text(t, "status-line"); got != "POST /v1/charges → 200 OK" {
		t.Errorf("got %q, want a charge", got)
	}
	key("8", "demo-free")
	key("0", "")
	p.set(t, "key", "demo-pro")
	key("7", "demo-pro")
	key("0", "demo-pro")
}

// TestRestart: the page notices that the server is another process, which has forgotten the sandbox and all counts.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := openDemo(t, s, desktop)
	p.send(t, "burst-send")
	p.alone()
	s.stop()
	p.click(t, "one")
	p.until(t, `document.getElementById("status-line").textContent === "No answer: the server is unavailable."`)
	again := start(t, "-addr", strings.TrimPrefix(s.url, "http://"))
	p.click(t, "one")
	p.until(t, `document.getElementById("summary").textContent.startsWith("The server has restarted, so the counts of this page begin again. 1 request in ")`)
	if allowed, denied := p.number(t, "allowed"), p.number(t, "denied"); allowed != 1 || denied != 0 {
		t.Errorf("got %d allowed and %d denied, want the request after the restart", allowed, denied)
	}

	p.set(t, "target", "sandbox")
	p.set(t, "requests", "5")
	p.until(t, fmt.Sprintf(inForce, "token-bucket 5/10s burst 10"))
	again.stop()
	p.until(t, `document.getElementById("source").textContent === "no connection to the server"`)
	start(t, "-addr", strings.TrimPrefix(s.url, "http://"))
	p.until(t, `document.getElementById("sandbox-says").textContent === "The server has dropped your sandbox, so this is a new one. In force: token-bucket 5/10s burst 10"`)
	p.until(t, `document.getElementById("left").textContent === "10 of 10 left"`)
}

// TestFocus: a button that is pressed keeps the keyboard's focus, while requests run and afterwards.
func TestFocus(t *testing.T) {
	t.Parallel()
	p := openDemo(t, start(t), desktop)
	p.set(t, "pace", "5")
	p.set(t, "count", "3")
	for _, id := range []string{"burst-send", "one"} {
		p.do(t, "focus", chromedp.Focus("#"+id))
		for range 2 { // the second time shows that the focus is still there
			before := p.number(t, "allowed")
			p.do(t, "enter", chromedp.KeyEvent(kb.Enter))
			p.until(t, fmt.Sprintf(`Number(document.getElementById("allowed").textContent) > %d`, before))
			if got := eval[string](t, p, "document.activeElement.id"); got != id {
				t.Errorf("%s: got the focus at %q", id, got)
			}
			p.until(t, sent)
		}
	}
}

// TestForcedColours: with forced colours, what colours say is still there.
func TestForcedColours(t *testing.T) {
	t.Parallel()
	p := openDemo(t, start(t), desktop, command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "forced-colors", Value: "active"}},
	}))
	p.send(t, "burst-send")
	const background = `getComputedStyle(%s).backgroundColor`
	for what, two := range map[string][2]string{
		"the chosen traffic":    {`document.querySelector("input:checked + span")`, `document.querySelector("input:not(:checked) + span")`},
		"the water in the tank": {`document.getElementById("water")`, `document.getElementById("tank")`},
		"allowed and denied":    {`document.querySelector(".key.up"), "::before"`, `document.querySelector(".key.down"), "::before"`},
	} {
		one, other := eval[string](t, p, fmt.Sprintf(background, two[0])), eval[string](t, p, fmt.Sprintf(background, two[1]))
		if one == other {
			t.Errorf("%s: got the same colour, %s", what, one)
		}
	}
	p.picture(t, "forced-colours")
}

// TestPhone: on a phone, what the press of a button did is on the same screen as the button.
func TestPhone(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := openDemo(t, s, phone)
	p.do(t, "scroll", chromedp.ScrollIntoView("#burst-send"))
	const visible = `(id) => { const b = document.getElementById(id).getBoundingClientRect(); return b.top >= 0 && b.bottom <= innerHeight && b.height > 0 }`
	p.send(t, "burst-send")
	for _, id := range []string{"burst-send", "allowed", "denied", "countdown", "left", "tank"} {
		if !eval[bool](t, p, fmt.Sprintf("(%s)(%q)", visible, id)) {
			t.Errorf("%s is not on the screen of the button", id)
		}
	}
	p.screen(t, "phone-sent")

	p = open(t, s, "/status", phone)
	const shown = `(text) => [...document.querySelectorAll("main *")].some((e) => { const b = e.getBoundingClientRect(); return e.textContent.includes(text) && e.children.length < 3 && b.top >= 0 && b.bottom <= innerHeight && b.height > 0 })`
	for _, text := range []string{"orders denied 5 of 15", "ip=#", "100 %"} {
		if !eval[bool](t, p, fmt.Sprintf("(%s)(%q)", shown, text)) {
			t.Errorf("%q is not on the first screen of the status page", text)
		}
	}
	p.screen(t, "phone-status")
}

// TestIcon: a page without an icon of its own, such as /metrics, costs its reader nothing.
func TestIcon(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := open(t, s, "/metrics", desktop)
	_ = open(t, s, "/status", desktop)
	if said := p.complaints(); len(said) > 0 {
		t.Errorf("got %q, want nothing", said)
	}
	r, err := http.Get(s.url + "/favicon.ico")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if metrics := s.get(t, "/metrics"); r.StatusCode != http.StatusOK || strings.Contains(metrics, `{outcome="allowed",policy="unmatched",tier=""} 1`) {
		t.Errorf("got %d for the icon, or it was charged", r.StatusCode)
	}
}
