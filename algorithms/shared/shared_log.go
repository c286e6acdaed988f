// How lines of the log are written.
//
// Causes are found under mutexes, and a handler of logs may be slow, hang or
// panic. So one goroutine writes the lines, and nothing waits for it. A line
// carries the instant of its cause. The goroutine ends when all lines are written.
//
// The circuits of a Cluster turn together when the network fails. So the line of
// one waits for a second, and the circuits that turn in that time share it.

package shared

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// logPrefix begins every line, as in package ratelimit.
	logPrefix = "ratelimit: "

	turnsFor = time.Second     // circuits of a Cluster that turn in this time share a line
	closeFor = 2 * time.Second // close waits for a handler
	maxLines = 1_000           // that wait for a slow handler; more are dropped
)

// A logWriter writes lines to a handler.
type logWriter struct {
	handler slog.Handler

	mu      sync.Mutex    // guards the fields below
	lines   []*line       // to be written
	written chan struct{} // closed when they are; nil if there are none
}

// A line is one line of the log.
type line struct {
	slog.Record
	turns int           // circuits that share it, if it waits
	waits time.Duration // for other circuits
}

// add lets a line be written. A line about a circuit joins the line about the same
// turn of another one, if that is not written.
func (w *logWriter) add(n *line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, other := range w.lines {
		if n.waits > 0 && other.waits > 0 && other.Message == n.Message {
			n.turns, n.Time = n.turns+other.turns, other.Time
			w.lines[i] = n
			return
		}
	}
	if len(w.lines) == maxLines {
		return
	}
	w.lines = append(w.lines, n)
	if w.written == nil {
		w.written = make(chan struct{})
		go w.write()
	}
}

// write writes the lines, until there are no more.
func (w *logWriter) write() {
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
func (w *logWriter) handle(n *line) {
	defer func() { _ = recover() }()
	if ctx := context.Background(); w.handler.Enabled(ctx, n.Level) {
		if n.waits > 0 {
			n.Add("circuits", n.turns)
		}
		_ = w.handler.Handle(ctx, n.Record)
	}
}

// close waits until the lines are written, at most for closeFor.
func (w *logWriter) close() {
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
