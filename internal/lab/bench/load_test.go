package main

import (
	"context"
	"testing"
	"unsafe"
)

// TestFillPassesCopies: a limiter that keeps the keys of fill does not hold the text of
// the measured checks.
func TestFillPassesCopies(t *testing.T) {
	addresses, equal := make(map[*byte]bool), make(map[string]bool)
	l := newLoad(plan{callers: 1, keys: 10}, func() take {
		return func(_ context.Context, key string) (bool, error) {
			addresses[unsafe.StringData(key)], equal[key] = true, true
			return true, nil
		}
	})
	l.fill(t.Context())
	for _, key := range l.keys {
		if !equal[key] || addresses[unsafe.StringData(key)] {
			t.Errorf("fill passed no copy of %s", key)
		}
	}
}
