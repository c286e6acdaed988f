package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

// inForce is true when the server has confirmed the limit of the sandbox.
const inForce = `document.getElementById("sandbox-says").textContent === "In force: %s"`

// fill sets fields of the sandbox, and waits until their limit is in force.
func (p *page) fill(t *testing.T, limit string, fields ...string) {
	t.Helper()
	for i := 0; i+1 < len(fields); i += 2 {
		p.set(t, fields[i], fields[i+1])
	}
	p.until(t, fmt.Sprintf(inForce, limit))
}

// TestNever: a request that costs more than the limit has no time to come back, and the page does not say "now".
func TestNever(t *testing.T) {
	t.Parallel()
	p := openDemo(t, start(t), phone)
	p.set(t, "target", "sandbox")
	p.fill(t, "token-bucket 10/10s burst 2", "burst", "2")
	p.set(t, "cost", "3")
	p.send(t, "one")
	p.until(t, `document.getElementById("countdown").textContent === "never"`)
	last := eval[string](t, p, `[...document.querySelectorAll("#fields tbody tr")].at(-1).innerText`)
	if !strings.Contains(last, "Retry-After") || !strings.Contains(last, "Waiting does not help") {
		t.Errorf("got the last field explained as %q, want that no Retry-After was sent, and why", last)
	}
	if got := p.text(t, "fields"); strings.Contains(got, "0 seconds") {
		t.Errorf("got %q, want no time where no field says one", got)
	}
	p.set(t, "cost", "1")
	p.until(t, `document.getElementById("countdown").textContent === "now"`)
}

// TestWaitOfAnOldLimit: a wait ends when its limit is replaced.
func TestWaitOfAnOldLimit(t *testing.T) {
	t.Parallel()
	p := openDemo(t, start(t), desktop)
	p.set(t, "target", "sandbox")
	p.fill(t, "sliding-window-log 1/1m", "algorithm", "sliding-window-log", "requests", "1", "window", "60")
	p.set(t, "count", "2")
	p.send(t, "burst-send")
	p.until(t, `document.getElementById("countdown").textContent.endsWith(" s")`)
	p.set(t, "requests", "9")
	p.until(t, `document.getElementById("countdown").textContent === "now"`)
}

// TestLeakyBucket: a burst fills the queue of a leaky bucket, and the rest is denied, although a browser holds requests back.
func TestLeakyBucket(t *testing.T) {
	t.Parallel()
	p := openDemo(t, start(t), desktop)
	p.set(t, "target", "sandbox")
	p.fill(t, "leaky-bucket 10/10s burst 5", "algorithm", "leaky-bucket")
	p.send(t, "burst-send")
	if allowed, denied := p.number(t, "allowed"), p.number(t, "denied"); allowed < 5 || denied == 0 || allowed+denied != 15 {
		t.Errorf("got %d allowed and %d denied, want 15 in all, at least five of them served and some denied", allowed, denied)
	}
}

// TestRefusedLimit: the page shows why a limit is refused and which one is in force, until the form has that one again.
func TestRefusedLimit(t *testing.T) {
	t.Parallel()
	p := openDemo(t, start(t), phone)
	p.set(t, "target", "sandbox")
	p.fill(t, "leaky-bucket 10/10s burst 5", "algorithm", "leaky-bucket")
	p.set(t, "window", "60")
	p.until(t, `document.querySelector("#sandbox-says.wrong")`)
	want := "Not changed: sandboxes want a queue that empties within 10 seconds: take fewer places, more requests or a shorter window. " +
		"In force: leaky-bucket 10/10s burst 5"
	if got := p.text(t, "sandbox-says"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	p.fill(t, "leaky-bucket 10/10s burst 5", "window", "10")
	if eval[bool](t, p, `document.querySelector("#sandbox-says.wrong") !== null`) {
		t.Error("got the error of a limit that was corrected")
	}
}

// TestServerGone: all parts of the page show that the server is unavailable, and go on when it is back.
func TestServerGone(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := openDemo(t, s, desktop)
	p.set(t, "target", "sandbox")
	p.until(t, `document.getElementById("left").textContent === "10 of 10 left"`)
	p.alone()
	s.stop()
	p.until(t, `document.getElementById("source").textContent === "no connection to the server"`)
	p.set(t, "requests", "7")
	p.until(t, `document.getElementById("sandbox-says").textContent.startsWith("Not changed: the server does not answer.")`)
	p.send(t, "one")
	if got := p.text(t, "status-line"); got != "No answer: the server is unavailable." || p.number(t, "other") != 1 {
		t.Errorf("got %q and %d others, want no answer, once", got, p.number(t, "other"))
	}
	p.set(t, "per-minute", "20")
	p.until(t, `document.getElementById("traffic-says").textContent === "No comparison: the server does not answer."`)
	if rows := eval[int](t, p, `document.querySelectorAll("#results tbody tr").length`); rows != 0 {
		t.Errorf("got %d results of another limit, want none", rows)
	}
	p.picture(t, "server-gone")
}

// TestManyTabs: tabs that listen to their sandboxes leave connections for requests.
func TestManyTabs(t *testing.T) {
	t.Parallel()
	s := start(t)
	var p *page
	for range 6 {
		p = openDemo(t, s, desktop)
		p.set(t, "target", "sandbox")
		p.until(t, fmt.Sprintf(inForce, "token-bucket 10/10s"))
	}
	p.send(t, "burst-send")
	if allowed, denied := p.number(t, "allowed"), p.number(t, "denied"); allowed < 10 || allowed+denied != 15 {
		t.Errorf("got %d allowed and %d denied, want 15 in all", allowed, denied)
	}
}

// TestAnotherRoute: the page shows no answer of another route.
func TestAnotherRoute(t *testing.T) {
	t.Parallel()
	p := openDemo(t, start(t), phone)
	p.send(t, "one")
	p.set(t, "target", "3")
	if got := p.text(t, "status-line"); strings.Contains(got, "/v1/orders") || eval[bool](t, p, `document.getElementById("fields").checkVisibility()`) {
		t.Errorf("got %q and the fields of another route's answer, want neither", got)
	}
}

// TestGaugeOfDenials: Retry-After says when one request fits, and not when a sliding window is empty.
func TestGaugeOfDenials(t *testing.T) {
	t.Parallel()
	p := openDemo(t, start(t), desktop)
	eval[bool](t, p, `(() => { import("/demo/gauge.js").then((module) => { window.gauge = new module.Gauge() }); return true })()`)
	p.until(t, "window.gauge")
	const left = `(() => {
		let seconds = 0;
		const clock = performance.now;
		performance.now = () => seconds * 1000;
		gauge.answer({ left: 0, limit: 30, window: 60, reset: 20, retry: 20 }, %q);
		const parts = [19, 21, 121].map((s) => { seconds = s; return Math.round(30 * gauge.part()) });
		performance.now = clock;
		return parts.join(" ");
	})()`
	for algorithm, want := range map[string]string{
		"fixed-window": "0 30 30", "sliding-window-log": "0 1 30", "sliding-window-counter": "0 1 30", "token-bucket": "10 11 30",
	} {
		if got := eval[string](t, p, fmt.Sprintf(left, algorithm)); got != want {
			t.Errorf("%s: got %s left at 19, 21 and 121 s, want %s", algorithm, got, want)
		}
	}
}

// TestWithoutScripts: the page says what to do, and hides the forms.
func TestWithoutScripts(t *testing.T) {
	t.Parallel()
	p := open(t, start(t), "/", phone, command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	for selector, want := range map[string]bool{"#send": false, "#limits": false, "#questions": true, "noscript a": true, "h1": true} {
		if got := eval[bool](t, p, fmt.Sprintf("document.querySelector(%q).checkVisibility()", selector)); got != want {
			t.Errorf("%s: got seen: %v, want %v", selector, got, want)
		}
	}
	p.picture(t, "without-scripts")
}

// TestUnadvertised: the page does not blame the shown limit for a denial of a hidden one.
func TestUnadvertised(t *testing.T) {
	t.Parallel()
	p := openDemo(t, start(t), desktop)
	// A browser gives each element with an id a global name: window.fields is the table.
	eval[bool](t, p, `(() => { import("/demo/fields.js").then((module) => { window.explainer = module }); return true })()`)
	p.until(t, "window.explainer")
	const says = `explainer.explain(new Headers(%s), %d).map((row) => row.name + ": " + row.value).join(", ")`
	for given, want := range map[string]string{
		`{ "Retry-After": "4" }`:                            "RateLimit: not sent, Retry-After: 4",
		`{ "Retry-After": "4", "X-RateLimit-Limit": "10" }`: "Retry-After: 4, X-RateLimit-Limit: 10",
	} {
		if got := eval[string](t, p, fmt.Sprintf(says, given, 429)); got != want {
			t.Errorf("%s: got %q explained, want %q", given, got, want)
		}
	}
	const nobody = `{ "Content-Type": "application/problem+json" }`
	if got := eval[string](t, p, fmt.Sprintf(`explainer.explain(new Headers(%s), 403).at(-1).says`, nobody)); got != "Waiting does not help: the limit admits no request." {
		t.Errorf("got %q explained of a limit that admits nobody", got)
	}
	for headers, want := range map[string]string{nobody: "denied", `{ "RateLimit": '"api";r=1' }`: "allowed", "{}": "other"} { // the application may answer 403, too
		if got := eval[string](t, p, fmt.Sprintf(`explainer.decision({ status: 403, headers: new Headers(%s) })`, headers)); got != want {
			t.Errorf("%s: got 403 as %s, want %s", headers, got, want)
		}
	}
	if got := eval[string](t, p, fmt.Sprintf(says, `{ "Retry-After": "4" }`, 503)); got != "Retry-After: 4" {
		t.Errorf("got %q explained of 503, want the sent field", got)
	}
}
