// Package logwriter writes the lines of a log on a goroutine of its own.
//
// Causes are found under mutexes and on requests, and a handler of logs may be
// slow, hang or panic. So one goroutine writes the lines, and nothing waits for it.
// A line carries the instant of its cause. The goroutine ends when all lines are
// written.
//
// The circuits of a Cluster turn together when the network fails. So the line of
// one waits for a second, and the circuits that turn in that time share it.
package logwriter

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	prefix = "ratelimit: " // of every line of this module

	// TurnsFor is how long a line about a circuit waits for other circuits.
	TurnsFor = time.Second

	closeFor = 2 * time.Second // Close waits for a handler
	maxLines = 1_000           // that wait for a slow handler; the next line says how many more were dropped

	warnEvery = 10 * time.Second // of a Seldom
)

// A Writer writes lines to the handler of a logger. It is safe for concurrent use.
type Writer struct {
	handler slog.Handler

	mu      sync.Mutex    // guards the fields below
	lines   []*line       // to be written
	dropped int           // lines, since the last line that was added
	written chan struct{} // closed when they are; nil if there are none
}

// A line is one line of the log.
type line struct {
	slog.Record
	turns int           // circuits that share it, if it waits
	waits time.Duration // for other circuits
}

// New returns a Writer; nil means slog.Default().
func New(log *slog.Logger) *Writer {
	if log == nil {
		log = slog.Default()
	}
	return &Writer{handler: log.Handler()}
}

// Add adds a line to the log.
func (w *Writer) Add(level slog.Level, text string, args ...any) { w.AddAfter(0, level, text, args...) }

// AddAfter adds a line to the log after a wait for other circuits. If the latest line
// that waits has the same text, the two lines become one.
func (w *Writer) AddAfter(wait time.Duration, level slog.Level, text string, args ...any) {
	n := &line{Record: slog.NewRecord(time.Now(), level, prefix+text, 0), turns: 1, waits: wait}
	n.Record.Add(args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case n.waits > 0 && w.join(n):
		return
	case len(w.lines) == maxLines:
		w.dropped++
		return
	case w.dropped > 0:
		n.Record.Add("dropped", w.dropped)
		w.dropped = 0
	}
	w.lines = append(w.lines, n)
	if w.written == nil {
		w.written = make(chan struct{})
		go w.write()
	}
}

// join lets n take the place of the latest line that waits. It reports false if there
// is none, or if that line has another text. It requires mu.
func (w *Writer) join(n *line) bool {
	for i := len(w.lines) - 1; i >= 0; i-- {
		if latest := w.lines[i]; latest.waits > 0 {
			if latest.Message != n.Message {
				return false
			}
			n.turns, n.Time = n.turns+latest.turns, latest.Time
			w.lines[i] = n
			return true
		}
	}
	return false
}

// write writes the lines, until there are no more.
func (w *Writer) write() {
	for {
		w.mu.Lock()
		if len(w.lines) == 0 {
			close(w.written)
			w.written = nil
			w.mu.Unlock()
			return
		}
		due := w.lines[0].Time.Add(w.lines[0].waits)
		w.mu.Unlock()
		time.Sleep(time.Until(due))
		w.mu.Lock()
		next := w.lines[0]
		w.lines = w.lines[1:]
		w.mu.Unlock()
		w.handle(next)
	}
}

// handle writes a line. A handler that panics loses it.
func (w *Writer) handle(n *line) {
	defer func() { _ = recover() }()
	if ctx := context.Background(); w.handler.Enabled(ctx, n.Level) {
		if n.waits > 0 {
			n.Record.Add("circuits", n.turns)
		}
		_ = w.handler.Handle(ctx, n.Record)
	}
}

// Close waits until the lines are written, at most for two seconds. A Writer that is
// closed still writes.
func (w *Writer) Close() {
	w.mu.Lock()
	written := w.written
	w.mu.Unlock()
	if written == nil {
		return
	}
	select {
	case <-written:
	case <-time.After(closeFor):
	}
}

// A Seldom is a Writer for causes that may come with every request. It is safe for
// concurrent use.
type Seldom struct {
	*Writer

	mu   sync.Mutex
	last map[[2]string]lastLine // by message and policy
}

type lastLine struct {
	at      time.Time
	skipped int
}

// Warn adds a warning: each message of a policy at most once in ten seconds, with the
// number of lines that it left out. A message is a noun phrase; policy may be empty.
func (s *Seldom) Warn(message, policy string, err error) {
	now, line := time.Now(), [2]string{message, policy}
	s.mu.Lock()
	defer s.mu.Unlock()
	last, seen := s.last[line]
	if seen && now.Sub(last.at) < warnEvery {
		last.skipped++
		s.last[line] = last
		return
	}
	if s.last == nil {
		s.last = make(map[[2]string]lastLine)
	}
	s.last[line] = lastLine{at: now}
	args := make([]any, 0, 6)
	if policy != "" {
		args = append(args, "policy", policy)
	}
	args = append(args, "error", err)
	if last.skipped > 0 {
		args = append(args, "suppressed", last.skipped)
	}
	s.Add(slog.LevelWarn, message, args...)
}
