// Tests of the marks, with a clock that the test sets.

package e2e

import (
	"fmt"
	"testing"
)

// draws is a script that draws a stage with one mark at an age in ms of its clock, and returns what it has drawn: the
// height of the mark from the top, and the part of its ring that is closed.
const draws = `(() => {
	const canvas = document.createElement("canvas");
	canvas.style.cssText = "position: fixed; top: 0; width: 600px; height: 322px";
	document.body.append(canvas);
	let now = 1000;
	const clock = performance.now;
	const arc = CanvasRenderingContext2D.prototype.arc;
	performance.now = () => now;
	const stage = new window.stageModule.Stage(canvas, { clock: () => now, view: () => ({ from: 0, to: 20000 }), axis: () => [] });
	stage.begin([{ name: "limit" }]);
	stage.add({ at: 1000, what: %q, retryAt: 5000 });
	stage.draw();
	now += %d;
	let drawn = [];
	CanvasRenderingContext2D.prototype.arc = function (x, y, r, from, to) { drawn.push([y, (to - from) / (2 * Math.PI)]); return arc.call(this, x, y, r, from, to); };
	stage.draw();
	CanvasRenderingContext2D.prototype.arc = arc;
	performance.now = clock;
	canvas.remove();
	return [drawn[0][0], drawn.at(-1)[1]].map((n) => Math.round(n * 100) / 100).join(" ");
})()`

// TestMarksMove: a request moves to the limit, which is the band in the middle, and through it or back. A ring closes as
// Retry-After passes. For a visitor who wants less motion, marks are at their places at once.
func TestMarksMove(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, motion := range []string{"no-preference", "reduce"} {
		p := openFirst(t, s, desktop, media("light", motion))
		eval[bool](t, p, `(() => { import("/demo/stage.js").then((module) => { window.stageModule = module }); return true })()`)
		p.until(t, "window.stageModule")
		drawn := func(what string, age int) string { return eval[string](t, p, fmt.Sprintf(draws, what, age)) }
		allowed, denied := map[int]string{0: "300 1", 225: "174.5 1", 450: "120.5 1"}, map[int]string{0: "300 0", 225: "174.5 0.06", 450: "179.5 0.11", 2000: "179.5 0.5", 4000: "179.5 1"}
		if motion == "reduce" {
			allowed, denied = map[int]string{0: "120.5 1", 225: "120.5 1"}, map[int]string{0: "179.5 0", 225: "179.5 0.06", 2000: "179.5 0.5", 4000: "179.5 1"}
		}
		for age, want := range allowed {
			if got := drawn("allowed", age); got != want {
				t.Errorf("%s: an allowed request after %d ms: got %q, want %q", motion, age, got, want)
			}
		}
		for age, want := range denied {
			if got := drawn("denied", age); got != want {
				t.Errorf("%s: a denied request after %d ms: got %q, want %q", motion, age, got, want)
			}
		}
	}
}
