package middleware

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	denialsAnew  = time.Minute
	denialsLines = 100 // a minute, so that an attack does not fill the disk
)

// A denialLog logs the first denial of each key in a minute, at the debug level.
type denialLog struct {
	mu      sync.Mutex // guards what follows
	minute  time.Duration
	logged  map[denialOf]bool // in this minute
	skipped int               // keys' denials for want of lines
}

type denialOf struct {
	policy *policy
	hash   uint64
}

func (l *denialLog) log(ctx context.Context, logger *slog.Logger, hash uint64, p *policy, c *algorithms.Check, now time.Duration) {
	if !logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	skipped, ok := l.first(denialOf{p, hash}, now)
	if !ok {
		return
	}
	key := strings.Clone(p.ShowKeys.show(c.Key)) // its bytes are the decision's, and a handler may keep them
	logger.LogAttrs(ctx, slog.LevelDebug, "ratelimit: denied", slog.String("policy", p.Name), slog.String("key", key),
		slog.Bool("shadow", c.Op == algorithms.Trial), slog.Duration("retry_after", c.Decision.RetryAfter), slog.Int("not_logged_before", skipped))
}

// first reports whether to log, and how many denials were not since the last
// minute's end.
func (l *denialLog) first(d denialOf, now time.Duration) (skipped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if minute := now / denialsAnew; l.logged == nil || minute != l.minute {
		l.minute, l.logged = minute, make(map[denialOf]bool)
	}
	switch {
	case l.logged[d]:
		return 0, false
	case len(l.logged) >= denialsLines:
		l.skipped++
		return 0, false
	}
	l.logged[d] = true
	skipped, l.skipped = l.skipped, 0
	return skipped, true
}
