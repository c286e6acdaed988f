// Package wrapped looks through limiters that wrap others.
package wrapped

import (
	"reflect"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/lent"
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

func init() { lent.To[*algorithms.Memory]() } // algorithms imports the standard library only

// KeepsNoKey reports whether neither l nor a limiter below it keeps a string of its checks.
func KeepsNoKey(l algorithms.Limiter) bool {
	for lent.Fits(l) {
		wrapper, wraps := l.(interface{ Unwrap() algorithms.Limiter })
		if !wraps {
			return true
		}
		l = wrapper.Unwrap()
	}
	return false
}

// Same reports whether a and b are certainly one limiter. Limiters whose type cannot
// be compared are never the same.
func Same(a, b any) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}
