// Tests of the sandbox.

package e2e

import (
	"testing"

	"github.com/penstock-go/penstock/internal/redistest"
)

// TestSandbox: a visitor's limit is in force at once, and the server sends the units left.
func TestSandbox(t *testing.T) {
	t.Parallel()
	p := openDemo(t, start(t), desktop)
	p.set(t, "target", "sandbox")
	p.set(t, "algorithm", "sliding-window-log")
	p.set(t, "window", "60")
	p.set(t, "requests", "6") // before the server has answered the first change
	p.until(t, `document.getElementById("sandbox-says").textContent === "In force: sliding-window-log 6/1m"`)
	p.until(t, `document.getElementById("left").textContent === "6 of 6 left"`)
	p.set(t, "cost", "2")
	p.set(t, "count", "5")
	p.send(t, "burst-send")
	if allowed, denied := p.number(t, "allowed"), p.number(t, "denied"); allowed != 3 || denied != 2 {
		t.Errorf("got %d allowed and %d denied, want 3 and 2: each costs two of six", allowed, denied)
	}
	p.until(t, `document.getElementById("left").textContent === "0 of 6 left"`)
	p.picture(t, "sandbox")
	p.set(t, "requests", "9")
	p.until(t, `document.getElementById("left").textContent === "3 of 9 left"`) // units in use stay in use
}

// TestOutage: without Redis the sandbox goes on, and shows who decides.
func TestOutage(t *testing.T) {
	t.Parallel()
	s := start(t, "-redis", "redis://"+redistest.Start(t).Addr(), "-demo-outage")
	p := openDemo(t, s, phone)
	p.set(t, "target", "sandbox")
	p.until(t, `document.getElementById("source").textContent === "decided by Redis"`)
	p.click(t, "outage")
	p.until(t, `document.getElementById("source").textContent === "decided without Redis"`)
	p.send(t, "burst-send")
	if allowed, other := p.number(t, "allowed"), p.number(t, "other"); allowed == 0 || other > 0 {
		t.Errorf("got %d allowed and %d errors without Redis, want some and none", allowed, other)
	}
	p.picture(t, "outage")
	p.click(t, "outage")
	p.until(t, `document.getElementById("source").textContent === "decided by Redis"`)
}
