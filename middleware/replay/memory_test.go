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

// inUse returns the bytes of the heap that are in use.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A log of these tests holds less than in a replay, so that fewer lines fill it.
const (
	mostHeld = 4 << 20
	mostHeap = 16 << 20 // with what is between the parser and the engine
)

func (c *crowd) Read(p []byte) (int, error) {
	for len(c.rest) < len(p) && c.lines > 0 {
		n := min(c.lines, 1+len(p)/len(c.line))
		c.rest = append(c.rest, strings.Repeat(c.line, n)...)
		c.lines -= n
	}
	if len(c.rest) == 0 {
		c.heap = inUse()
		return 0, io.EOF
	}
	n := copy(p, c.rest)
	c.rest = append(c.rest[:0], c.rest[n:]...)
	return n, nil
}

// TestLinesOfOneSecondAreNotHeld: however many lines come in a second, and however long they are, memory is bounded.
func TestLinesOfOneSecondAreNotHeld(t *testing.T) {
	for name, c := range map[string]*crowd{
		"many": {lines: 100_000, line: commonLine(1, "/a?b=c")},
		"long": {lines: 2_000, line: commonLine(1, "/"+strings.Repeat("a", 20_000))},
		"JSON": {lines: 50_000, line: `{"time":"2026-01-01T00:00:00Z","address":"192.0.2.1","method":"GET","path":"/","status":200,"agent":"` + strings.Repeat("x", 1_000) + "\"}\n"},
	} {
		want := c.lines
		l, err := openLog([]string{"-"}, c, 0)
		if err != nil {
			t.Fatal(err)
		}
		l.sources[0].order.most = mostHeld
		lines, before := 0, inUse()
		if err := l.each(t.Context(), func(all []*entry) error { lines += len(all); return nil }); err != nil {
			t.Fatal(err)
		}
		if c.heap > before+mostHeap || lines != want || l.Late > 0 {
			t.Errorf("%s: %d of %d lines, %d of them late; the heap holds %d MB, want at most %d", name, lines, want, l.Late, (c.heap-before)>>20, mostHeap>>20)
		}
	}
}

// TestFullOrder: where lines take more memory than may be held, the earliest go on, and the others are still put in order.
func TestFullOrder(t *testing.T) {
	t.Parallel()
	const lines, apart = 60_000, 1_000
	var text bytes.Buffer
	for i := range lines { // ten microseconds each, a thousand lines out of order
		at := i/apart*apart + apart - 1 - i%apart
		fmt.Fprintf(&text, `{"time":"2026-01-01T00:00:%02d.%06dZ","address":"192.0.2.1","method":"GET","path":"/%d"}`+"\n", at/100_000, at%100_000*10, at)
	}
	l, err := openLog([]string{"-"}, &text, 0)
	if err != nil {
		t.Fatal(err)
	}
	l.sources[0].order.most = mostHeld
	got := pathsOf(t, l) // fails if a line comes too late
	if len(got) != lines || l.Late > 0 || got[0] != "/0" || got[lines-1] != fmt.Sprintf("/%d", lines-1) {
		t.Errorf("got %d lines, %d of them late, want %d in order", len(got), l.Late, lines)
	}
}
