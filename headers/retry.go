package headers

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Never is the wait that does not end. It is the largest [time.Duration], so
// that the longest of several waits is Never if one of them is.
const Never = time.Duration(math.MaxInt64)

// maxRetryAfter is 24.8 days in seconds. Clients that wait with JavaScript's
// setTimeout hold milliseconds in 32 bits: told to wait longer, they retry
// after one millisecond. A client that returns after 24.8 days is denied again.
const maxRetryAfter = 2_147_483

// RetryAfterSeconds returns the wait in whole seconds as Retry-After says it:
// rounded up, at least 1 since a 0 makes clients hammer, and at most 2147483
// (24.8 days), above which many clients retry at once. It returns false for
// [Never], of which a response says nothing.
func RetryAfterSeconds(wait time.Duration) (int64, bool) {
	if wait == Never {
		return 0, false
	}
	return min(max(ceilSeconds(wait), 1), maxRetryAfter), true
}

// SetRetryAfter sets Retry-After (RFC 9110 section 10.2.3) to the wait as
// [RetryAfterSeconds] gives it. [Dialect.Write] does so for denials; this is
// for other answers, such as a 503.
//
// The field has one line, always: several make clients fail. If it is set
// already the longer wait stays; a date, or what does not parse, is replaced.
// [Never] is longer than all and removes the field. h must not be nil.
func SetRetryAfter(h http.Header, wait time.Duration) {
	seconds, ok := longestWait(h, wait)
	if !ok {
		delete(h, keyRetryAfter)
		return
	}
	h[keyRetryAfter] = []string{strconv.FormatInt(seconds, 10)}
}

// longestWait returns the seconds of the wait, or of a longer one in h.
func longestWait(h http.Header, wait time.Duration) (int64, bool) {
	seconds, ok := RetryAfterSeconds(wait)
	if !ok {
		return 0, false
	}
	for _, line := range h[keyRetryAfter] {
		if set, ok := parseDigits(line); ok {
			seconds = max(seconds, min(set, maxRetryAfter))
		}
	}
	return seconds, true
}

// parseDigits reads 1*DIGIT, and nothing else that [strconv.ParseInt] accepts,
// such as "+5". What is too large for a structured field becomes its largest.
func parseDigits(s string) (int64, bool) {
	s = strings.Trim(s, " \t")
	var n int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = min(n*10+int64(s[i]-'0'), maxInteger)
	}
	return n, s != ""
}

// ceilSeconds returns d in seconds, rounded up; 0 for negative ones. Adding a
// second less a nanosecond first would overflow near Never.
func ceilSeconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return seconds
}
