// What the page weighs, and when a visitor can use it.

package e2e

import (
	"fmt"
	"testing"

	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// weightOf is a script that returns the bytes of the page and its files as they were sent.
const weightOf = `performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation"))
	.filter((e) => !/\/(sandboxes|routes|compare)/.test(e.name)).reduce((sum, e) => sum + e.transferSize, 0)`

// hasty is a script for a new page: a visitor who presses the main button as soon as the page is painted and says that its
// buttons work. It sets drawn to the time of the first frame that shows an answer to this press.
const hasty = `(() => {
	const is = (name) => performance.getEntriesByName(name).length > 0;
	const press = () => {
		if (!is("first-paint") || !is("usable")) return void requestAnimationFrame(press);
		window.pressed = performance.now();
		document.getElementById("burst-send").click(); // which also ends the page's own burst, and sets the counts to 0
		requestAnimationFrame(answered);
	};
	const answered = () => {
		if (document.getElementById("allowed").textContent === "0") return void requestAnimationFrame(answered);
		setTimeout(() => { window.drawn = performance.now(); }); // after this frame
	};
	if (location.protocol === "http:") requestAnimationFrame(press);
})()`

// TestWeight: the page and its files weigh at most 60 KB, compressed. The log tells what a hasty visitor notices at the
// first visit, which starts a process of the browser, and at later ones. All times are in ms from the start of the
// navigation: the end of the document, the first paint, the time when the buttons work, and the frame that shows the first
// answer to a press of the main button. The test does not judge these times, because they depend on the machine.
func TestWeight(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := open(t, s, "/", phone, media("light", "no-preference"), command(cdpage.AddScriptToEvaluateOnNewDocument, cdpage.AddScriptToEvaluateOnNewDocumentParams{Source: hasty}))
	for _, visit := range []string{"first visit", "second", "third", "fourth"} {
		if visit != "first visit" {
			p.do(t, "an empty page", chromedp.Navigate("about:blank"))
			p.do(t, visit, chromedp.Navigate(s.url+"/"))
		}
		p.until(t, "window.drawn && "+ready)
		const times = `[performance.getEntriesByType("navigation")[0].responseEnd, performance.getEntriesByName("first-paint")[0].startTime,
			performance.getEntriesByName("usable")[0].startTime, window.pressed, window.drawn].map(Math.round)`
		at := eval[[]int](t, p, times)
		t.Logf("%s: document %d, painted %d, buttons %d, pressed %d, answer drawn %d ms", visit, at[0], at[1], at[2], at[3], at[4])
		weight := eval[int](t, p, weightOf)
		if first := visit == "first visit"; weight > 60_000 || first && weight < 10_000 {
			t.Errorf("%s: got %d bytes, want 60 000 or fewer", visit, weight)
		}
		t.Logf("%s: %d bytes, %s", visit, weight, fmt.Sprintf("%d requests", eval[int](t, p, `performance.getEntriesByType("resource").filter((e) => !/sandboxes/.test(e.name)).length`)))
	}
}
