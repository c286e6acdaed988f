// Package wrapped looks through limiters that wrap others.
package wrapped

import (
	"reflect"

	"github.com/penstock-go/penstock/algorithms"
)

// A Counter is a limiter that counts.
type Counter interface{ Stats() algorithms.Stats }

// Find returns the limiter with the methods of T: l, or the first limiter below it
// that has them.
func Find[T any](l algorithms.Limiter) (found T, ok bool) {
	for l != nil {
		if found, ok = l.(T); ok {
			return found, true
		}
		wrapper, wraps := l.(interface{ Unwrap() algorithms.Limiter })
		if !wraps {
			break
		}
		l = wrapper.Unwrap()
	}
	return found, false
}

// Same reports whether a and b are certainly one limiter. Limiters whose type cannot
// be compared are never the same.
func Same(a, b any) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}
