package middleware

import (
	"log/slog"
	"sync/atomic"

	"github.com/penstock-go/penstock/algorithms"
)

// LogEvents returns an observer of limiters, for the Observe of their options,
// that logs what an operator should know, once per change: that Redis is not
// available and that it is again, that it is not configured for the limiter, what
// else is wrong with how it is set up, and that units could not be given back. How often the rest happens is in the
// limiters' Stats. nil means slog.Default().
//
// It logs no keys, and no secrets but what the texts of Redis's own errors hold.
func LogEvents(logger *slog.Logger) func(algorithms.Event) {
	if logger == nil {
		logger = slog.Default()
	}
	l := &eventLog{logger: logger, troubles: troubles{logger: logger}}
	return l.observe
}

type eventLog struct {
	logger        *slog.Logger
	troubles      troubles
	misconfigured atomic.Bool // and it was logged
}

func (l *eventLog) observe(e algorithms.Event) {
	switch e.Kind {
	case algorithms.EventOpened:
		l.logger.Error("Redis is not available: this instance limits by itself until it is", "class", e.Class, "error", e.Err)
	case algorithms.EventClosed:
		l.logger.Info("Redis is available again")
		l.misconfigured.Store(false)
	case algorithms.EventError:
		if e.Class == algorithms.ErrorConfiguration && !l.misconfigured.Swap(true) {
			l.logger.Error("Redis is not configured for the limiter", "error", e.Err)
		}
	case algorithms.EventReturnFailed:
		l.troubles.log("units could not be given back, and stay charged until they drain", e.Err)
	case algorithms.EventFinding:
		logFinding(l.logger, e.Finding)
	}
}
