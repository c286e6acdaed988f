package replay

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// commonLine returns a line of a second since the beginning of 2026.
func commonLine(second int, path string) string {
	at := time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC)
	return fmt.Sprintf("192.0.2.1 - - [%s] \"GET %s HTTP/1.1\" 200 1\n", at.Format(commonTime), path)
}

// write writes a file, compressed if its name says so.
func write(t *testing.T, name, text string) string {
	t.Helper()
	content := []byte(text)
	if strings.HasSuffix(name, ".gz") {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write(content); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
		content = b.Bytes()
	}
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func readAll(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// read returns the paths of all lines, in the order of the log.
func read(t *testing.T, stdin string, names ...string) (*log, []string) {
	t.Helper()
	l, err := openLog(names, strings.NewReader(stdin), 0)
	if err != nil {
		t.Fatal(err)
	}
	return l, pathsOf(t, l)
}

// pathsOf reads a log to its end.
func pathsOf(t *testing.T, l *log) (paths []string) {
	t.Helper()
	defer l.close()
	last := int64(0)
	err := l.each(t.Context(), func(lines []*entry) error {
		for i := range lines {
			if lines[i].Time < last {
				t.Errorf("%s comes too late", lines[i].Path)
			}
			last = lines[i].Time
			paths = append(paths, lines[i].Path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestSources: several files, in any order, compressed or not, and the standard input are one log.
func TestSources(t *testing.T) {
	t.Parallel()
	var texts [3]strings.Builder
	var want []string
	for i := range 300 {
		path := fmt.Sprintf("/%d", i)
		texts[i/7%3].WriteString(commonLine(i, path))
		want = append(want, path)
	}
	_, got := read(t, texts[1].String(), write(t, "b.log.gz", texts[2].String()), "-", write(t, "a.log", texts[0].String()))
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestOutOfOrder: lines may be a minute out of order. A line that comes later is counted, and keeps its place.
func TestOutOfOrder(t *testing.T) {
	t.Parallel()
	seconds := make([]int, 1000)
	for i := range seconds {
		seconds[i] = i + rand.IntN(30)
	}
	var text strings.Builder
	for i, second := range seconds {
		text.WriteString(commonLine(second, fmt.Sprintf("/%d", i)))
	}
	text.WriteString(commonLine(900, "/late"))
	l, got := read(t, text.String(), "-")
	if len(got) != len(seconds)+1 || l.Late != 1 {
		t.Errorf("got %d lines, %d of them late, want %d and 1", len(got), l.Late, len(seconds)+1)
	}
}

// TestLateLinesAreNotHeld: after a clock went back by hours, the rest of the log stays out of memory.
func TestLateLinesAreNotHeld(t *testing.T) {
	t.Parallel()
	var o order
	taken := 0
	for i := range 1_000 {
		o.add(&entry{Time: int64(1_000-i) * 1_000 * micros})
		for o.due() {
			o.take()
			taken++
		}
	}
	if o.late != 999 || taken != 999 {
		t.Errorf("got %d late lines and %d taken, want 999 of both", o.late, taken)
	}
}

func TestBadLines(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("bad\n", 4) + "\n" + strings.Repeat("x", 2*maxLine) + "\n" + commonLine(1, "/good") + commonLine(2, "/last")
	l, got := read(t, text, "-")
	if !slices.Equal(got, []string{"/good", "/last"}) || l.Bad != 5 || l.All != 7 {
		t.Errorf("got %q, %d of %d lines bad, want /good and /last, 5 of 7", got, l.Bad, l.All)
	}
	if len(l.BadShown) != badShown || !strings.HasPrefix(l.BadShown[0], `-:1: `) || !strings.Contains(l.BadShown[0], `"bad"`) {
		t.Errorf("got %q, want the first three bad lines", l.BadShown)
	}
}

func TestOpenNamesEveryFile(t *testing.T) {
	t.Parallel()
	if _, err := openLog([]string{"-", "-"}, strings.NewReader(""), 0); err == nil {
		t.Error("the standard input twice: got no error")
	}
	_, err := openLog([]string{"/nonexistent/a", "/nonexistent/\x1b[31mb"}, nil, 0)
	if err == nil || !strings.Contains(err.Error(), "/a") || !strings.Contains(err.Error(), `/\x1b[31mb"`) {
		t.Errorf("got %q, want both files named, without escape codes", err)
	}
}

// TestOneInstantKeepsItsOrder: lines of one instant go on as the file has them.
func TestOneInstantKeepsItsOrder(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	var want []string
	for i := range 100 {
		want = append(want, fmt.Sprintf("/%d", i))
		text.WriteString(commonLine(1, want[i]))
	}
	if _, got := read(t, text.String(), "-"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSpoolHasNoName: a replay that is killed leaves no file.
func TestSpoolHasNoName(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows removes no open file")
	}
	s, err := newSpool()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.file.Name()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want no file", err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// TestEnd: a replay ends with the error of its consumer, of its context, or of a broken file.
func TestEnd(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(commonLine(1, "/a"), 100*batch)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	failed := errors.New("failed")
	for _, tt := range []struct {
		name string
		ctx  context.Context
		err  error
		want error
	}{{"consumer", t.Context(), failed, failed}, {"context", ended, nil, context.Canceled}} {
		l, err := openLog([]string{"-"}, strings.NewReader(long), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.each(tt.ctx, func([]*entry) error { return tt.err }); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
	silent, writer := io.Pipe()
	t.Cleanup(func() { _ = writer.Close() })
	l, err := openLog([]string{"-"}, silent, 0)
	if err != nil {
		t.Fatal(err)
	}
	waiting, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	if err := l.each(waiting, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent input: got %v, want %v", err, context.DeadlineExceeded)
	}
	content := readAll(t, write(t, "a.gz", long))
	content[len(content)/2]++
	if l, err = openLog([]string{"-"}, bytes.NewReader(content), 0); err != nil {
		t.Fatal(err)
	}
	if err := l.each(t.Context(), func([]*entry) error { return nil }); err == nil {
		t.Error("a broken compressed file: got no error")
	}
}
