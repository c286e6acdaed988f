package redistest

import (
	"testing"
	"time"
)

// This file waits for conditions by polling. Polling also works inside a testing/synctest bubble, where its pauses take
// only virtual time.

// Patience bounds each wait. It is longer than any condition takes, even on a busy machine.
const Patience = 2 * time.Minute

// The pause doubles from the shortest to the longest. Most conditions hold within a millisecond, and a wait of seconds
// should not keep a core busy.
const (
	shortestPause = 50 * time.Microsecond
	longestPause  = 10 * time.Millisecond
)

// Until polls until the condition holds. After [Patience], it fails the test with a message that names the condition,
// such as "the circuit is open". It belongs to the goroutine that runs the test.
func Until(tb testing.TB, condition string, holds func() bool) {
	tb.Helper()
	if !poll(Patience, holds) {
		tb.Fatalf("redistest: waited %v until %s", Patience, condition)
	}
}

// UntilEmpty polls until missing returns "". After [Patience], it fails the test with a message that names the condition
// and quotes the last text of missing, which says what the condition still lacks.
func UntilEmpty(tb testing.TB, condition string, missing func() string) {
	tb.Helper()
	var text string
	if !poll(Patience, func() bool { text = missing(); return text == "" }) {
		tb.Fatalf("redistest: waited %v until %s: %s", Patience, condition, text)
	}
}

// poll reports whether ok held within d. It calls ok at least once.
func poll(d time.Duration, ok func() bool) bool {
	pause := shortestPause
	for end := time.Now().Add(d); !ok(); pause = min(2*pause, longestPause) {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(pause)
	}
	return true
}

// must fails the test if there is an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
}
