// The questions of a Middleware about its limiter.

package ratelimit

import (
	"reflect"

	"github.com/penstock-go/penstock/algorithms"
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
