package limitertest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// runCorrupt checks what is made of a state that nobody wrote: no error, no more than the limit admitted, and no key
// that lives for ever.
func runCorrupt(t *testing.T, s Subject) {
	if s.Plant == nil {
		return
	}
	for _, l := range ten() {
		name := l.Algorithm().String()
		garbage, lies := planted(l)
		t.Run(name+" garbage", func(t *testing.T) {
			t.Parallel()
			w := s.world(t, "what does not parse counts as absent, and is healed by the next charge")
			for _, raw := range garbage {
				w.fresh().heals(l, raw)
			}
		})
		t.Run(name+" lies", func(t *testing.T) {
			t.Parallel()
			w := s.world(t, "whatever parses never makes an error, never admits more than the limit, and expires")
			for _, raw := range lies {
				for _, at := range laterAndEarlier {
					w.fresh().bears(l, raw, at, algorithms.Take)
				}
				w.fresh().bears(l, raw, 0, append(settlements, algorithms.Take)...)
			}
			for _, raw := range garbage {
				w.fresh().bears(l, raw, 0, algorithms.Force)
			}
		})
		t.Run(name+" wrong kind", func(t *testing.T) {
			t.Parallel()
			w := s.world(t, "a key of another type is its call's error, and is never written or deleted")
			for _, kind := range []string{"string", "list", "hash"} {
				if kind != kindOf(l) {
					w.fresh().refuses(l, kind)
				}
			}
		})
	}
}

// planted returns texts that do not parse as a state, and texts that do.
func planted(l algorithms.Limit) (garbage, lies []string) {
	switch kindOf(l) {
	case "list":
		return garbageLists, lyingLists
	case "zset":
		return nil, lyingSets
	default:
		return garbageTexts, lyingTexts
	}
}

var laterAndEarlier = []int64{-60 * second, -60*second + 1, 20 * second, 60 * second, 61 * second, 150 * second}

// kindOf returns how a limit's state is stored.
func kindOf(l algorithms.Limit) string {
	switch l.Algorithm().String() {
	case "sliding-window-log":
		return "list"
	case "concurrent":
		return "zset"
	default:
		return "string"
	}
}

var garbageTexts = []string{
	"", "garbage", "nan", "inf", "-inf", "1e17", "0x10", " 5 ", "5x", "0", "-1", "1763729430000000", "1763729430.000007",
	"176372943000000007", "17637294300000000070", "1763729430000000 07", "176372943000000000x", " 1763729430000000007", "1763729430000000007\n",
	"1763729430000000007\x00", "+1763729430000000007", "-763729430000000007",
	"1763729430000000:7", "1763729430000000:7:0:0", ":7:0", "1763729430000000::0", "1763729430000000:7:", "::", "a:b:c",
	"-1763729430000000:7:0", "1763729430000000:-7:0", "1763729430000000:7.5:0", "1763729430000000:7:0 ", "1763729430000000:0x7:0", "1763729430000000:7:nan", "1763729430000000:1e1:0",
	"9007199254740992:7:0", "1763729430000000:9007199254740992:0", "1763729430000000:7:9007199254740992", "99999999999999999999:7:0",
	"1763729430000000:7:" + strings.Repeat("0", 40), strings.Repeat("9", 1000), strings.Repeat("7:", 1000),
}

var lyingTexts = []string{
	"1763729430000000007", "1763729430000000:7:0",
	"9999999999999999999", "0000000000000000999", "0000000000000000000", "1763729430000000999", "1763729430000000000", "9007199254740993001",
	"1763729430000000:9007199254740991:9007199254740991", "9007199254740991:999:1", "9007199254740991:9007199254740991:9007199254740991", "0:1:1", "0:0:0",
	"1763729430000000:0:5", "1763729430000000:0:9007199254740991", "1763729430000000:5:9007199254740991", "9007199254740991:0:9007199254740991", "1763729430100000:10:0", "1763729430100001:10:0",
}

var garbageLists = []string{
	"garbage 1763729430000000007", "nan", "inf inf", "-1 1763729430000000007", "176372943000000000 1763729430000000007", "1763729430000000:7 1763729430000000007",
	"17637294300000000070 1763729430000000007", "9007199254740992:7:0 1763729430000000007", strings.Repeat("x ", 100) + "x", strings.Repeat("9", 1000) + " 1763729430000000007",
}

var lyingLists = []string{
	// The header says what it should, for a start.
	"1763729430000000007 1763729430000000003 1763729430000000004",
	// No entries; fewer units, more units, and no units than the entries have.
	"1763729430000000007", "1763729430000000001 1763729430000000007 1763729430000000002", "1763729430000000009 1763729430000000001", "1763729430000000000 1763729430000000007",
	// Entries that do not parse, cost nothing, or cost far too much.
	"1763729430000000007 x y z", "1763729430000000007 1763729430000000003 x", "1763729430000000007 1763729430000000003 nan 1763729430000000004", "1763729430000000007 1763729430000000000 1763729430000000000",
	"1763729430000000010 1763729430000000:9007199254740991:0 1763729430000000:9007199254740991:0", "1763729430000000:9007199254740991:0 1763729430000000001",
	// Entries out of order, or from the future.
	"1763729430000000010 1763729440000000005 1763729420000000005", "1763729430000000010 9999999999999999005 1763729420000000005", "9999999999999999010 9999999999999999005 9999999999999999005",
	// A header older and newer than its entries.
	"1763729400000000005 1763729429000000005", "1763729429000000005 1763729300000000002 1763729310000000003", "0000000000000000005 1763729430000000005", "1763729430000000:5:7 1763729430000000:5:7",
	// Many entries.
	"1763729430000000999" + strings.Repeat(" 1763729430000000001", 999), "1763729430000000010" + strings.Repeat(" 1763729429000000001", 999), "1763729430000000010" + strings.Repeat(" x", 999),
	"1763729430000000010" + strings.Repeat(" 1763729360000000001", 999), "1763729430000000010 1763729360000000001" + strings.Repeat(" x", 300),
}

// lyingSets are of fields score/member. Any member is a unit that is held, whatever it is called.
var lyingSets = []string{
	"1763729430000000/a", "1763729430000000/a 1763729430000000/b 1763729429000000/c", "0/a", "-1/a", "-inf/a", "inf/a", "-inf/a inf/b", "1.5/a 1763729430000000.5/b",
	"9007199254740993/a", "1e300/a 1763729430000000/b", "1763729430100000/a", "1763729430100001/a", "1763729490000000/a 1763729370000000/b 1763729370000001/c",
	lyingUnits(9, epoch), lyingUnits(10, epoch), lyingUnits(11, epoch-30*second), lyingUnits(600, epoch-60*second+5), lyingUnits(600, epoch+second),
}

func lyingUnits(n int, first int64) string {
	var fields []string
	for i := range n {
		fields = append(fields, fmt.Sprintf("%d/unit%d", first+int64(i), i))
	}
	return strings.Join(fields, " ")
}

// heals plants what does not parse, and wants a fresh key.
func (w *world) heals(l algorithms.Limit, raw string) {
	w.Helper()
	c := w.on("", l, 3)
	w.s.Plant(w, c, kindOf(l), raw)
	w.full(c)
	if d := w.one(w.on("", l, 11)); d.Allowed || d.Remaining != 10 {
		w.errorf("%v over %.60q: got %s, want a denial and 10 remaining", l, raw, show(d))
	}
	if got := w.s.Stored(w, c); got != raw && got != "" {
		w.errorf("%v over %.60q: got %.60q stored after a denial, want it left or gone", l, raw, got)
	}
	d := w.one(c)
	if !d.Allowed || d.Remaining != 7 {
		w.errorf("%v over %.60q: got %s, want 7 remaining", l, raw, show(d))
	}
	w.expires(c, d, injected)
	w.audit(c, d)
}

// bears plants anything, and asks ops of it.
func (w *world) bears(l algorithms.Limit, raw string, at int64, ops ...algorithms.Op) {
	w.Helper()
	w.to(at)
	c := w.on("", l, 1)
	for _, op := range ops {
		w.s.Plant(w, c, kindOf(l), raw)
		before := as(op, c)
		before.Decision.Receipt = w.receipt(l)
		w.one(before)
		w.hammer(l, raw)
	}
	w.s.Plant(w, c, kindOf(l), raw)
	w.hammer(l, raw)
	w.sleep(10 * time.Minute)
	d := w.take(l, 10)
	if !d.Allowed {
		w.errorf("%v over %.60q at %d: got %s ten minutes later, want the full limit", l, raw, at, show(d))
		return
	}
	w.expires(c, d, injected, algorithms.Decision{ResetAfter: century}) // earlier checks may have made it live for long
}

// receipt returns the receipt of a take at the present instant.
func (w *world) receipt(l algorithms.Limit) algorithms.Receipt {
	w.Helper()
	return w.one(w.on("elsewhere", algorithmLimit(l), 1)).Receipt
}

// algorithmLimit returns a limit of l's algorithm that no test exhausts.
func algorithmLimit(l algorithms.Limit) algorithms.Limit {
	return constructorOf(l)(10_000, time.Minute)
}

// hammer takes units until it is denied, and wants no more than the limit admitted.
func (w *world) hammer(l algorithms.Limit, raw string) {
	w.Helper()
	var admitted int64
	var d algorithms.Decision
	costs := []int64{4, 4, 2, 2, 1, 1} // leave nothing of ten
	for i := 0; i < len(costs); i++ {
		cost := costs[i]
		if i == len(costs)-1 && d.Allowed && len(costs) < 20 {
			costs = append(costs, 1) // as the state lies
		}
		if d = w.take(l, cost); d.Allowed {
			admitted += cost
			if w.s.TTL(w, w.on("", l, 1)) <= 0 {
				w.errorf("%v over %.60q: got a key that does not expire after a charge", l, raw)
			}
		}
		if d.Remaining < 0 || d.Remaining > l.Burst() {
			w.errorf("%v over %.60q: got %s", l, raw, show(d))
		}
	}
	if admitted > l.Burst() || d.Allowed {
		w.errorf("%v over %.60q: got %d admitted at once, want at most %d", l, raw, admitted, l.Burst())
	}
	// A list may hold instants that no limiter wrote, and that nobody looks at before they are the oldest.
	if longest := bound(l); d.RetryAfter > longest && kindOf(l) == "string" {
		w.errorf("%v over %.60q: got %s, want a wait of at most %v", l, raw, show(d), longest)
	}
}

// refuses plants another kind of key, and wants it left alone.
func (w *world) refuses(l algorithms.Limit, kind string) {
	w.Helper()
	c, good := w.on("", l, 1), w.on("good", l, 2)
	const raw = "1763729430000000007"
	w.s.Plant(w, c, kind, raw)
	for _, op := range append(takes[:2:2], settlements...) {
		bad := c
		bad.Op, bad.Decision.Receipt = op, w.receipt(l)
		beside := good
		if op >= algorithms.Return {
			beside.Op = algorithms.Force
		}
		for _, call := range [][]algorithms.Check{{bad}, {beside, bad}, {bad, beside}} {
			asked := text(call)
			err := w.limiter.Allow(w.Context(), call)
			if err == nil || errors.Is(err, algorithms.ErrInvalid) {
				w.errorf("%s over a %s: got error %v, want one that is not ErrInvalid", asked, kind, err)
			}
			w.full(good)
			if got, text := w.s.Kind(w, c), w.s.Stored(w, c); got != kind || text != raw {
				w.errorf("%s over a %s: got a %s, %q, want it left alone", asked, kind, got, text)
			}
		}
	}
	if got := w.s.TTL(w, c); got >= 0 {
		w.errorf("%v over a %s: got a key that expires in %v, want it left alone", l, kind, fmt.Sprint(got))
	}
}
