// The test of the first story.

package e2e

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestFirstStory: the first story is drawn at its end without a click, for visitors who want less motion and for those who
// do not: each lane "Served" has its marks.
func TestFirstStory(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, motion := range []string{"no-preference", "reduce"} {
		p := open(t, s, "/", desktop, media("light", motion))
		p.until(t, ready)
		for track := range 2 {
			// The lane of served requests is the upper part of each half of the picture, without the numbers of the notes.
			p.until(t, fmt.Sprintf(`(() => {
				const canvas = document.getElementById("story"), half = (canvas.height - 22 * devicePixelRatio) / 2, top = half * %d + 22;
				const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height }).getContext("2d", { willReadFrequently: true });
				copy.drawImage(canvas, 0, 0); // a read of the page's own canvas would slow it down
				const { data } = copy.getImageData(110, top, canvas.width - 110, half * 0.42 - 22);
				let water = 0;
				for (let i = 0; i < data.length; i += 4) if (data[i] === 0x0b && data[i + 1] === 0x64 && data[i + 2] === 0x80) water++;
				return water > 1000;
			})()`, track))
		}
		p.do(t, "the story", chromedp.ScrollIntoView("#story"))
		p.screen(t, "first-story-"+motion)
	}
}
