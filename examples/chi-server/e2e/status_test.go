// The test of the status page.

package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

// row is a script that returns the cells of a policy's row on the status page.
const row = `[...[...document.querySelector("[aria-labelledby=policies] table").tBodies[0].rows].find((r) => r.cells[0].textContent.trim().startsWith(%q)).cells].map((c) => c.innerText.trim().split(/\s/)[0])`

// TestStatus: the page counts the requests, has enough contrast in each colour scheme, fits each width, and has no
// script.
func TestStatus(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{desktop, laptop, phone, narrow} {
			name := fmt.Sprintf("status-%s-%d", scheme, width)
			s := start(t) // one server each, because the page covers a minute, and a slow machine needs that for a few
			allowed, denied := s.orders(t)
			p := open(t, s, "/status", width, command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			}))
			cells := eval[[]string](t, p, fmt.Sprintf(row, "orders"))
			if len(cells) != 6 || cells[0] != "orders" || cells[3] != fmt.Sprint(allowed+denied) || cells[4] != fmt.Sprint(denied) {
				t.Errorf("%s: got %q, want %d requests of orders, and %d denied", name, cells, allowed+denied, denied)
			}
			if n := eval[int](t, p, "document.scripts.length"); n != 0 {
				t.Errorf("%s: got %d scripts, want none", name, n)
			}
			if poor := eval[[]string](t, p, contrasts); len(poor) > 0 {
				t.Errorf("%s: too little contrast: %q", name, poor)
			}
			if wide := eval[int64](t, p, "document.documentElement.scrollWidth"); wide > width {
				t.Errorf("%s: got a page %d wide", name, wide)
			}
			const cut = `[...document.querySelectorAll("details")].forEach((d) => { d.open = true }), [...document.querySelectorAll(".limit")].filter((l) => {
				const inner = l.getBoundingClientRect(), outer = l.closest("tr").getBoundingClientRect();
				return inner.right > outer.right || inner.right > document.documentElement.clientWidth;
			}).map((l) => l.textContent)`
			if limits := eval[[]string](t, p, cut); len(limits) > 0 {
				t.Errorf("%s: got the cut limits %q", name, limits)
			}
			accessible(t, p)
			if said := p.complaints(); len(said) > 0 {
				t.Errorf("%s: got %q, want nothing", name, said)
			}
			p.picture(t, name)
		}
	}
}

// orders sends fifteen requests, and returns how many were allowed and denied.
func (s *server) orders(t *testing.T) (allowed, denied int) {
	t.Helper()
	for range 15 {
		response, err := http.Get(s.url + "/v1/orders/1")
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		switch response.StatusCode {
		case http.StatusOK:
			allowed++
		case http.StatusTooManyRequests:
			denied++
		}
	}
	if allowed+denied != 15 || denied == 0 {
		t.Fatalf("got %d allowed and %d denied of 15", allowed, denied)
	}
	return allowed, denied
}
