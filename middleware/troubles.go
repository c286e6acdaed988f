package middleware

import (
	"log/slog"
	"sync"
	"time"
)

const logEvery = 10 * time.Second

// troubles logs what goes wrong: each message at most once per logEvery, with
// the number of those in between that were not logged.
type troubles struct {
	logger *slog.Logger

	mu   sync.Mutex
	last map[string]trouble // by message
}

type trouble struct {
	at      time.Time
	skipped int
}

func (t *troubles) log(message string, err error) {
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
	t.logger.Warn("ratelimit: "+message, "error", err, "not_logged_since", last.skipped)
}
