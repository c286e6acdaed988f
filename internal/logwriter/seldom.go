package logwriter

import (
	"log/slog"
	"sync"
	"time"
)

const warnEvery = 10 * time.Second

// A Seldom is a Writer for causes that may come with every request. It is safe for
// concurrent use.
type Seldom struct {
	*Writer

	mu   sync.Mutex
	last map[lineOf]lastLine
}

// A lineOf is what lines have in common.
type lineOf struct{ message, policy string }

type lastLine struct {
	at      time.Time
	skipped int
}

// Warn adds a warning: each message of a policy at most once in ten seconds, with the
// number of lines that it left out. A message is a noun phrase; policy may be empty.
func (s *Seldom) Warn(message, policy string, err error) {
	now, line := time.Now(), lineOf{message, policy}
	s.mu.Lock()
	defer s.mu.Unlock()
	last, seen := s.last[line]
	if seen && now.Sub(last.at) < warnEvery {
		last.skipped++
		s.last[line] = last
		return
	}
	if s.last == nil {
		s.last = make(map[lineOf]lastLine)
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
