package ratelimit

import (
	"log/slog"
	"sync"
	"time"
)

const (
	logPrefix = "ratelimit: " // of every line of this module
	logEvery  = 10 * time.Second
)

// troubles logs each message of trouble at most once per logEvery, with the
// number of suppressed messages. A message is a noun phrase.
type troubles struct {
	logger *slog.Logger

	mu   sync.Mutex
	last map[string]trouble // by message
}

type trouble struct {
	at      time.Time
	skipped int
}

func (t *troubles) log(message string, err error, attributes ...any) {
	now := time.Now()
	t.mu.Lock()
	last, seen := t.last[message]
	if seen && now.Sub(last.at) < logEvery {
		last.skipped++
		t.last[message] = last
		t.mu.Unlock()
		return
	}
	if t.last == nil {
		t.last = make(map[string]trouble)
	}
	t.last[message] = trouble{at: now}
	t.mu.Unlock()
	args := append(attributes, "error", err)
	if last.skipped > 0 {
		args = append(args, "suppressed", last.skipped)
	}
	t.logger.Warn(logPrefix+message, args...)
}
