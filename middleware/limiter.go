// The questions of a Middleware about its limiter.

package ratelimit

import (
	"net/http"
	"reflect"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
)

// sameLimiter reports whether a and b are certainly one limiter. Limiters that cannot
// be compared are never the same.
func sameLimiter(a, b algorithms.Limiter) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// isMemory reports whether the limiter is an algorithms.Memory, or wraps one.
func isMemory(l algorithms.Limiter) bool {
	for l != nil {
		if _, ok := l.(*algorithms.Memory); ok {
			return true
		}
		l = unwrap(l)
	}
	return false
}

// unwrap returns the limiter that l wraps, or nil.
func unwrap(l algorithms.Limiter) algorithms.Limiter {
	if w, ok := l.(interface{ Unwrap() algorithms.Limiter }); ok {
		return w.Unwrap()
	}
	return nil
}

// A replayer is the limiter of package replay. Its Middlewares decide the requests of a log: they answer and hold none,
// report to no observer, and count denials towards bans at once.
type replayer interface {
	Handler(m *Middleware, next http.Handler) http.Handler // instead of the Middleware's own
	User() keyfunc.Identity                                // of the present request
}

// replayerOf returns the replayer that l is, or wraps; nil if there is none.
func replayerOf(l algorithms.Limiter) replayer {
	for ; l != nil; l = unwrap(l) {
		if r, ok := l.(replayer); ok {
			return r
		}
	}
	return nil
}

// defaultLimiterName names a limiter by its Stats, or by the Stats of the
// limiter that it wraps.
func defaultLimiterName(l algorithms.Limiter) string {
	for ; l != nil; l = unwrap(l) {
		if s, ok := l.(interface{ Stats() algorithms.Stats }); ok && s.Stats().Shared {
			return "redis"
		}
	}
	return "memory"
}
