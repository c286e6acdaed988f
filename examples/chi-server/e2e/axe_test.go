package e2e

import (
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

// violations is a script that runs axe-core, and returns the rules that the page breaks, with the first place of each.
const violations = `(() => {
	axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => {
		window.broken = violations.map((v) => v.id + ": " + v.nodes.length + " x " + v.nodes[0].html.slice(0, 120));
	});
	return true;
})()`

// inScheme opens a page in a colour scheme, with axe-core.
func inScheme(t *testing.T, s *server, path, scheme string, width int64) *page {
	t.Helper()
	axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatal("axe-core is missing, run make test-e2e to install it: ", err)
	}
	p := open(t, s, path, width, command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	}))
	eval[bool](t, p, string(axe)+"; true")
	return p
}

// TestAccessible: axe-core finds no violation on the pages, new and after requests, in both colour schemes.
func TestAccessible(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{desktop, phone} {
			t.Run(fmt.Sprint(scheme, width), func(t *testing.T) {
				t.Parallel()
				s := start(t, "-admin-token", "0123456789abcdef")
				check := func(p *page, state string) {
					t.Helper()
					eval[bool](t, p, violations)
					p.until(t, "window.broken")
					if broken := eval[[]string](t, p, "window.broken"); len(broken) > 0 {
						t.Errorf("%s: got %q, want no violation", state, broken)
					}
					eval[bool](t, p, "delete window.broken")
				}
				p := inScheme(t, s, "/", scheme, width)
				p.until(t, ready)
				check(p, "a new page")
				p.send(t, "burst-send")
				check(p, "after a burst")
				p.set(t, "target", "sandbox")
				p.until(t, fmt.Sprintf(inForce, "token-bucket 10/10s"))
				check(p, "a sandbox")
				p = inScheme(t, s, "/status", scheme, width)
				check(p, "the status page")
				eval[bool](t, p, `(() => { for (const d of document.querySelectorAll("details")) d.open = true; return true })()`)
				check(p, "the status page unfolded")
				p.picture(t, fmt.Sprintf("status-%s-%d", scheme, width))
			})
		}
	}
}
