package replay

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

// A crowd is a log of many lines of one second. It notes what the heap holds when the last line has been read.
type crowd struct {
	lines int
	line  string
	rest  []byte
	heap  uint64
}

func (c *crowd) Read(p []byte) (int, error) {
	for len(c.rest) < len(p) && c.lines > 0 {
		n := min(c.lines, 1+len(p)/len(c.line))
		c.rest = append(c.rest, strings.Repeat(c.line, n)...)
		c.lines -= n
	}
	if len(c.rest) == 0 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		c.heap = m.HeapAlloc
		return 0, io.EOF
	}
	n := copy(p, c.rest)
	c.rest = append(c.rest[:0], c.rest[n:]...)
	return n, nil
}

// TestLinesOfOneSecondAreNotHeld: however many lines come in a second, and however long they are, memory is bounded.
func TestLinesOfOneSecondAreNotHeld(t *testing.T) {
	for name, c := range map[string]*crowd{
		"many": {lines: 400_000, line: commonLine(1, "/a?b=c")},
		"long": {lines: 10_000, line: commonLine(1, "/"+strings.Repeat("a", 20_000))},
		"JSON": {lines: 200_000, line: `{"time":"2026-01-01T00:00:00Z","address":"192.0.2.1","method":"GET","path":"/","status":200,"agent":"` + strings.Repeat("x", 1_000) + "\"}\n"},
	} {
		want := c.lines
		l, err := openLog([]string{"-"}, c)
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		if err := l.each(t.Context(), func(all []entry) error { lines += len(all); return nil }); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d MB", name, c.heap>>20)
		if most := uint64(2 * maxHeld); c.heap > most || lines != want || l.late > 0 {
			t.Errorf("%s: %d of %d lines, %d of them late; the heap holds %d MB, want at most %d", name, lines, want, l.late, c.heap>>20, most>>20)
		}
		runtime.GC()
	}
}

// TestFullOrder: where lines take more memory than may be held, the earliest go on, and the others are still put in order.
func TestFullOrder(t *testing.T) {
	t.Parallel()
	const lines, apart = 300_000, 1_000
	var text bytes.Buffer
	for i := range lines { // ten microseconds each, a thousand lines out of order
		at := i/apart*apart + apart - 1 - i%apart
		fmt.Fprintf(&text, `{"time":"2026-01-01T00:00:%02d.%06dZ","address":"192.0.2.1","method":"GET","path":"/%d"}`+"\n", at/100_000, at%100_000*10, at)
	}
	l, got := read(t, text.String(), "-") // fails if a line comes too late
	if len(got) != lines || l.late > 0 || got[0] != "/0" || got[lines-1] != fmt.Sprintf("/%d", lines-1) {
		t.Errorf("got %d lines, %d of them late, want %d in order", len(got), l.late, lines)
	}
}
