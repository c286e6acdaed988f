// The log files: plain or compressed, one or several, or the standard input.

package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	maxLine  = 64 << 10 // bytes; longer lines are bad
	badShown = 3
	batch    = 512       // lines that go from the parser to the engine at once, or fewer if they
	batched  = 256 << 10 // take so many bytes
)

// A log is the lines of all files in one order. The fields are valid after the last line.
type log struct {
	lines
	unit    time.Duration // of durations that name none; 0: as the files show
	sources []*source
}

// A source is one file.
type source struct {
	log    *log
	name   string
	file   *os.File
	text   *bufio.Reader
	line   int
	parser parser
	order  order
	ended  bool   // the file has no more lines
	next   *entry // the earliest line that is left; nil: none, or not known yet
}

// openLog opens files by their names; "-" is the standard input. The error names every
// file that cannot be read.
func openLog(names []string, stdin io.Reader, unit time.Duration) (*log, error) {
	l := &log{unit: unit}
	var errs []error
	for i, name := range names {
		if name == "-" && slices.Contains(names[:i], name) {
			errs = append(errs, errors.New("-: the standard input can be read only once"))
			continue
		}
		s := &source{log: l, name: filepath.Base(name), order: order{most: maxHeld / len(names)}}
		input := stdin
		if name != "-" {
			f, err := os.Open(name)
			if err != nil {
				errs = append(errs, fmt.Errorf("open %q: %w", name, errors.Unwrap(err))) // a name may have escape codes
				continue
			}
			info, err := f.Stat()
			s.file, input = f, f
			if err == nil && info.Mode().IsRegular() {
				input = io.LimitReader(f, info.Size()) // a server may go on writing
			}
		}
		s.text = bufio.NewReaderSize(input, maxLine)
		l.sources = append(l.sources, s)
	}
	if err := errors.Join(errs...); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// open finds out whether the text is compressed, because the standard input has no name, and
// which unit its durations have.
func (s *source) open() error {
	magic, err := s.text.Peek(2)
	if err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		var unzipped *gzip.Reader
		if unzipped, err = gzip.NewReader(s.text); err == nil {
			s.text = bufio.NewReaderSize(unzipped, maxLine)
		}
	}
	if err != nil && !ends(err) {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	sample, _ := s.text.Peek(maxLine)
	if bytes.HasPrefix(sample, []byte("\xff\xfe")) || bytes.HasPrefix(sample, []byte("\xfe\xff")) {
		return fmt.Errorf("%s: the text is UTF-16: convert it to UTF-8", s.name)
	}
	if s.parser.unit = s.log.unit; s.parser.unit == 0 {
		p := parser{sampled: true}
		for line := range bytes.Lines(sample) {
			_, _ = p.parse(line) // it is read once more
		}
		if len(p.numbers) > 0 {
			s.parser.unit = unitOf(p.numbers)
		}
	}
	return nil
}

// ends reports whether an error is the end of a file, or of the part of a compressed file
// that has been written.
func ends(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }

func (l *log) close() {
	for _, s := range l.sources {
		if s.file != nil {
			_ = s.file.Close() // it was only read
		}
	}
}

// each passes all lines in the order of their times to do, in batches that another
// goroutine parses meanwhile. It ends early with the error of ctx, of a file or of do, and
// then does not wait for a read that blocks.
func (l *log) each(ctx context.Context, do func([]*entry) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := make(chan []*entry, 8)
	done := make(chan error, 1)
	go func() {
		defer close(batches)
		done <- l.merge(ctx, batches)
	}()
	for {
		select {
		case lines, more := <-batches:
			if !more {
				return <-done
			}
			if err := do(lines); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// merge sends the lines of all sources, the earliest first.
func (l *log) merge(ctx context.Context, batches chan<- []*entry) error {
	var lines []*entry
	size := 0
	send := func() error {
		select {
		case batches <- lines:
			lines, size = make([]*entry, 0, batch), 0
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	var errs []error
	for _, s := range l.sources {
		errs = append(errs, s.open())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for {
		var first *source
		for _, s := range l.sources {
			if err := s.fill(); err != nil {
				return err
			}
			if s.next != nil && (first == nil || s.next.Time < first.next.Time) {
				first = s
			}
		}
		if first == nil {
			break
		}
		lines = append(lines, first.next)
		size += first.next.size()
		first.next = nil
		if len(lines) >= batch || size >= batched {
			if err := send(); err != nil {
				return err
			}
		}
	}
	for _, s := range l.sources {
		l.Late += s.order.late
	}
	return send()
}

// fill reads on until it is certain which line is the next, or the source ends.
func (s *source) fill() error {
	for s.next == nil && !s.ended && !s.order.due() {
		if err := s.read(); err != nil {
			return err
		}
	}
	if s.next == nil {
		s.next = s.order.take()
	}
	return nil
}

// read reads a line.
func (s *source) read() error {
	text, err := s.text.ReadSlice('\n')
	s.line++
	for err == bufio.ErrBufferFull {
		_, err = s.text.ReadSlice('\n')
		text = []byte("more than 64 KB")
	}
	if err != nil && !ends(err) {
		return fmt.Errorf("%s:%d: %w", s.name, s.line, err)
	}
	s.ended = err != nil
	if s.ended && (len(text) > 0 || err != io.EOF) && !bytes.HasSuffix(text, []byte("}")) {
		s.log.Cut = append(s.log.Cut, s.name) // what is left of a line may be wrong
	} else if text = bytes.TrimSpace(text); len(text) > 0 {
		s.add(text)
	}
	return nil
}

// add parses a line, which is good, bad or no request.
func (s *source) add(text []byte) {
	l, err := s.parser.parse(text)
	if err == errNone {
		return
	}
	s.log.All++
	if err == nil {
		s.order.add(l)
		return
	}
	s.log.Bad++
	if len(s.log.BadShown) < badShown {
		const most = 100
		if len(text) > most {
			text = append(bytes.Clone(text[:most]), "..."...)
		}
		s.log.BadShown = append(s.log.BadShown, fmt.Sprintf("%s:%d: %v: %q", s.name, s.line, err, text))
	}
}
