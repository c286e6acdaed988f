// Tests of the whole page, on each screen.

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// media sets the colour scheme, and whether the visitor wants less motion.
func media(scheme, motion string) action {
	return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion}},
	})
}

// window sets the size of the window.
func window(width, height int64) action {
	return command(emulation.SetDeviceMetricsOverride,
		emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width <= phone})
}

// screens are the widths and heights of screens, without the bars of the browser.
var screens = [][2]int64{{desktop, 800}, {laptop, 640}, {phone, 664}, {narrow, 568}}

// TestEveryScreen: each part of the page works, fits, and is accessible, in both colour schemes.
func TestEveryScreen(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"light", "dark"} {
		for _, screen := range screens {
			t.Run(fmt.Sprint(scheme, screen[0]), func(t *testing.T) {
				t.Parallel()
				everyPart(t, start(t), scheme, screen)
			})
		}
	}
}

// everyPart uses each part of the page on a screen. The page loads nothing from elsewhere, and complains about no answer
// but the denials of its sandbox.
func everyPart(t *testing.T, s *server, scheme string, screen [2]int64) {
	t.Helper()
	p := openFirst(t, s, screen[0], media(scheme, "reduce"), window(screen[0], screen[1]))
	name := fmt.Sprintf("%s-%d", scheme, screen[0])
	p.screen(t, "first-"+name)
	firstScreen(t, p, screen[1])
	marksOpen(t, p)
	storiesPlay(t, p, name)
	codeFollows(t, p)
	limitsAnswer(t, p)
	readable(t, p, scheme, screen[0])
	p.picture(t, "page-"+name)
	elsewhere := eval[[]string](t, p, fmt.Sprintf(`performance.getEntriesByType("resource").map((r) => r.name).filter((n) => !n.startsWith(%q))`, s.url))
	if len(elsewhere) > 0 {
		t.Errorf("got %q, want everything from the server", elsewhere)
	}
	for _, said := range p.complaints() {
		if !strings.HasPrefix(said, "answer 429: "+s.url+"/demo/sandboxes/") {
			t.Errorf("got %q", said)
		}
	}
}

// readable: the page fits into the width, has the colours of the scheme with enough contrast, and is accessible.
func readable(t *testing.T, p *page, scheme string, width int64) {
	t.Helper()
	if wide := eval[int64](t, p, "document.documentElement.scrollWidth"); wide > width {
		t.Errorf("got a page %d wide", wide)
	}
	if dark := eval[bool](t, p, `(`+contrasts+`, luminance(getComputedStyle(document.body).backgroundColor) < 0.1)`); dark != (scheme == "dark") {
		t.Errorf("got a background that is dark: %v", dark)
	}
	if poor := eval[[]string](t, p, contrasts); len(poor) > 0 {
		t.Errorf("got %q, want a contrast of 4.5 or more for all text", poor)
	}
	accessible(t, p)
}

// firstScreen: the sentence, the command, the button and its effect are on one screen, and the effect is there without a click.
func firstScreen(t *testing.T, p *page, height int64) {
	t.Helper()
	for _, selector := range []string{"h1", "#get", ".links", "#burst-send", "#allowed", "#denied", "#countdown", "#left"} {
		if low := eval[float64](t, p, fmt.Sprintf(`document.querySelector(%q).getBoundingClientRect().bottom`, selector)); low > float64(height) {
			t.Errorf("%s ends at %v, below the screen of %d", selector, low, height)
		}
	}
	if top := eval[float64](t, p, `document.getElementById("timeline").getBoundingClientRect().top`); top > float64(height)-60 {
		t.Errorf("the picture begins at %v of %d", top, height)
	}
	title := eval[string](t, p, `document.querySelector("h1").textContent`)
	if !strings.Contains(title, "Go") || !strings.Contains(strings.ToLower(title), "rate limiting") {
		t.Errorf("got the sentence %q", title)
	}
	links := eval[[]string](t, p, `[...document.querySelectorAll(".links a")].map((a) => a.textContent + " " + a.href)`)
	want := []string{
		"Source https://github.com/penstock-go/penstock", "Reference https://pkg.go.dev/github.com/penstock-go/penstock",
		"MIT licence https://github.com/penstock-go/penstock/blob/main/LICENSE",
	}
	if !slices.Equal(links, want) {
		t.Errorf("got the links %q, want %q", links, want)
	}
	if allowed, denied := p.number(t, "allowed"), p.number(t, "denied"); allowed < 10 || allowed+denied != 15 {
		t.Errorf("got %d allowed and %d denied of the page's own burst", allowed, denied)
	}
}

// marksOpen: the visitor takes over with a new limit. A click on a mark opens its response, and so does the slider.
func marksOpen(t *testing.T, p *page) {
	t.Helper()
	p.send(t, "burst-send")
	if allowed, denied := p.number(t, "allowed"), p.number(t, "denied"); allowed < 10 || allowed+denied != 15 {
		t.Errorf("got %d allowed and %d denied, want a limit that is full again", allowed, denied)
	}
	p.until(t, `document.getElementById("pick").max === "15"`)
	const pick = `(() => { const pick = document.getElementById("pick"); pick.value = %d; pick.dispatchEvent(new Event("input")); return true })()`
	eval[bool](t, p, fmt.Sprintf(pick, 1))
	if got := p.text(t, "status-line"); !strings.HasSuffix(got, "200 OK") {
		t.Errorf("got %q as the first response", got)
	}
	// Choosing another response and clicking its mark are the same. Marks may still be on their way, so look again.
	p.do(t, "the picture", chromedp.ScrollIntoView("#timeline"))
	p.until(t, `(() => {
		const line = document.getElementById("status-line");
		const canvas = document.getElementById("timeline");
		const box = canvas.getBoundingClientRect();
		for (let y = box.bottom - 30; y > box.top; y -= 4) {
			for (let x = box.left; x < box.right; x += 6) {
				canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: x, clientY: y, bubbles: true }));
				if (canvas.style.cursor !== "pointer") continue;
				canvas.dispatchEvent(new MouseEvent("click", { clientX: x, clientY: y, bubbles: true }));
				return line.textContent.endsWith(Number(document.getElementById("denied").textContent) ? "429 Too Many Requests" : "200 OK");
			}
		}
		return false;
	})()`)
	if rows := eval[int](t, p, `document.querySelectorAll("#fields tbody tr").length`); rows < 5 {
		t.Errorf("got %d fields explained", rows)
	}
}

// storiesPlay: each story has notes on its time axis, and each note says something else.
func storiesPlay(t *testing.T, p *page, name string) {
	t.Helper()
	titles := eval[[]string](t, p, `[...document.querySelectorAll("#story-buttons button")].map((b) => b.textContent)`)
	for i, title := range titles {
		p.do(t, title, chromedp.Click(fmt.Sprintf("#story-buttons button:nth-child(%d)", i+1)))
		p.until(t, fmt.Sprintf(`document.getElementById("story").dataset.told === %q && !document.querySelector("#story-notes .later")`, title))
		if notes := eval[[]string](t, p, `[...document.querySelectorAll("#story-notes li")].map((li) => li.textContent)`); len(notes) < 3 || slices.Contains(notes, "") {
			t.Errorf("%s: got the notes %q", title, notes)
		}
		p.do(t, title, chromedp.ScrollIntoView("#story"))
		p.screen(t, fmt.Sprintf("story-%d-%s", i+1, name))
	}
}

// codeFollows: the code has the limit of the form.
func codeFollows(t *testing.T, p *page) {
	t.Helper()
	p.set(t, "requests", "7")
	p.until(t, fmt.Sprintf(inForce, "token-bucket 7/10s burst 10"))
	if got := p.text(t, "go"); !strings.Contains(got, "algorithms.TokenBucket(7, 10*time.Second).WithBurst(10),") {
		t.Errorf("got the program\n%s", got)
	}
	if got := p.text(t, "line"); got != "algorithms.TokenBucket(7, 10*time.Second).WithBurst(10)" {
		t.Errorf("got the line %s", got)
	}
	p.do(t, "copy", chromedp.Click(`button[data-copy=go]`))
	p.until(t, `["Copied", "Press Ctrl+C"].includes(document.querySelector("button[data-copy=go]").textContent)`)
	eval[bool](t, p, `(() => { document.activeElement.blur(); return true })()`)
}

// limitsAnswer: a bar that is drawn is sent to all seven limits, and the state at an instant is shown.
func limitsAnswer(t *testing.T, p *page) {
	t.Helper()
	p.do(t, "the drawing", chromedp.Focus("#traffic"))
	before := eval[string](t, p, `document.getElementById("results").dataset.sent`)
	if before != "20" {
		t.Errorf("got %s requests at first, want 20", before)
	}
	eval[bool](t, p, `(() => {
		const traffic = document.getElementById("traffic");
		for (const key of ["ArrowRight", "ArrowUp", "ArrowUp"]) traffic.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
		return true;
	})()`)
	p.until(t, `document.getElementById("results").dataset.sent === "22" && document.getElementById("results").dataset.traffic === "drawn"`)
	states := eval[[]string](t, p, `[...document.querySelectorAll("#results .state")].map((s) => s.textContent)`)
	if len(states) != 7 || !strings.HasPrefix(states[4], "counter: 10 of 10 since 1:00") || !strings.HasPrefix(states[6], "running: ") {
		t.Errorf("got the states %q", states)
	}
}

// TestCodeRuns: the program and the command of each request work as they are copied.
func TestCodeRuns(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	p := openFirst(t, start(t), desktop)
	targets := eval[[]string](t, p, `[...document.querySelectorAll("#target option")].map((o) => o.value)`)
	dir, err := os.MkdirTemp(root, ".code-") // inside the module, so that go build finds penstock
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, target := range targets {
		p.set(t, "target", target)
		p.until(t, `document.getElementById("go").textContent.includes(document.getElementById("target").value === "sandbox" ? '"api"' : "Limit")`)
		if err := os.MkdirAll(filepath.Join(dir, target), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, target, "main.go"), []byte(p.text(t, "go")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("gofmt", "-l", dir).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("gofmt: %v\n%s", err, out)
	}
	vet := exec.Command("go", "vet")
	vet.Dir = dir
	for _, target := range targets {
		vet.Args = append(vet.Args, "./"+target)
	}
	if out, err := vet.CombinedOutput(); err != nil {
		t.Errorf("go vet: %v\n%s", err, out)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		return // the rest needs curl
	}
	p.set(t, "target", "sandbox")
	if got := p.text(t, "curl"); !strings.Contains(got, "/requests?cost=1'") || !strings.Contains(got, "seq 15") {
		t.Errorf("got the command\n%s", got)
	}
	p.set(t, "target", "0")
	out, err := exec.Command("sh", "-c", p.text(t, "curl")).CombinedOutput()
	if err != nil || strings.Count(string(out), "200\n") < 10 || !strings.Contains(string(out), "RateLimit-Policy: \"orders\"") && !strings.Contains(string(out), "Ratelimit-Policy: \"orders\"") {
		t.Errorf("curl: got %v\n%s", err, out)
	}
}

// TestOutagePicture: the picture of the outage has its colours, although the page forbids styles that are not files: the
// others' errors, and what penstock admitted.
func TestOutagePicture(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := openFirst(t, s, desktop)
	p.do(t, "the picture", chromedp.ScrollIntoView(".measured img"))
	p.until(t, `document.querySelector(".measured img").complete`)
	const count = `(() => {
		const img = document.querySelector(".measured img"), canvas = document.createElement("canvas");
		canvas.width = 1154; canvas.height = 576;
		const to = canvas.getContext("2d");
		to.drawImage(img, 0, 0, 1154, 576);
		const data = to.getImageData(0, 0, 1154, 576).data, counts = [0, 0];
		for (let i = 0; i < data.length; i += 4) {
			if (data[i] === 0xc8 && data[i+1] === 0x34 && data[i+2] === 0x1a) counts[0]++;
			if (data[i] === 0x0b && data[i+1] === 0x64 && data[i+2] === 0x80) counts[1]++;
		}
		return counts;
	})()`
	if got := eval[[]int](t, p, count); got[0] < 500 || got[1] < 500 {
		t.Errorf("got %d pixels of errors and %d of admitted requests, want both", got[0], got[1])
	}
}
