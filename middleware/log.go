package ratelimit

import (
	"log/slog"
	"sync"
	"time"

	"github.com/penstock-go/penstock/internal/logwriter"
)

const logEvery = 10 * time.Second

// A troubleLog logs each message of a policy at most once per logEvery, with the
// number of lines that it left out. A message is a noun phrase.
type troubleLog struct {
	*logwriter.Writer

	mu   sync.Mutex
	last map[lineOf]lastLine
}

// A lineOf is what lines have in common.
type lineOf struct{ message, policy string }

type lastLine struct {
	at      time.Time
	skipped int
}

// trouble logs trouble; policy may be empty.
func (l *troubleLog) trouble(message, policy string, err error) {
	now, line := time.Now(), lineOf{message, policy}
	l.mu.Lock()
	defer l.mu.Unlock()
	last, seen := l.last[line]
	if seen && now.Sub(last.at) < logEvery {
		last.skipped++
		l.last[line] = last
		return
	}
	if l.last == nil {
		l.last = make(map[lineOf]lastLine)
	}
	l.last[line] = lastLine{at: now}
	args := make([]any, 0, 6)
	if policy != "" {
		args = append(args, "policy", policy)
	}
	args = append(args, "error", err)
	if last.skipped > 0 {
		args = append(args, "suppressed", last.skipped)
	}
	l.Add(slog.LevelWarn, message, args...)
}
