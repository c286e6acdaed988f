package e2e

import (
	"fmt"
	"os"
	"testing"
)

// violations is a script that runs axe-core, and returns the rules that the page breaks, with the first place of each.
const violations = `(() => {
	axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => {
		window.broken = violations.map((v) => v.id + ": " + v.nodes.length + " x " + v.nodes[0].html.slice(0, 120));
	});
	return true;
})()`

// accessible wants no violation of axe-core's rules.
func accessible(t *testing.T, p *page) {
	t.Helper()
	axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatal("axe-core is missing, run make test-e2e to install it: ", err)
	}
	eval[bool](t, p, "(window.axe || (() => { "+string(axe)+" })(), true)")
	eval[bool](t, p, violations)
	p.until(t, "window.broken")
	if broken := eval[[]string](t, p, "window.broken"); len(broken) > 0 {
		t.Errorf("got %q, want no violation", broken)
	}
	eval[bool](t, p, "delete window.broken")
}

// TestStatusAccessible: axe-core finds no violation on the status page, folded and unfolded.
func TestStatusAccessible(t *testing.T) {
	t.Parallel()
	s := start(t, "-admin-token", "0123456789abcdef")
	s.orders(t)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{desktop, phone} {
			p := open(t, s, "/status", width, media(scheme, "reduce"))
			accessible(t, p)
			eval[bool](t, p, `(() => { for (const d of document.querySelectorAll("details")) d.open = true; return true })()`)
			accessible(t, p)
			p.picture(t, fmt.Sprintf("status-%s-%d", scheme, width))
		}
	}
}
