package headers

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Never is the wait of a request that no wait helps.
const Never = time.Duration(math.MaxInt64)

// maxWait is 14 days in seconds. JavaScript's setTimeout holds milliseconds in
// 32 bits, 24.8 days, and a client that uses it for a longer wait retries after
// one millisecond. The rest is room for additions of clients: a second, or a
// fifth of the wait. The limiter denies a client that returns too early again.
const maxWait = 1_209_600

// setMilliseconds sets Retry-After-Ms. Call it before Retry-After is set, because a longer wait in h stays.
func setMilliseconds(h http.Header, wait time.Duration) {
	if wait == Never {
		delete(h, keyMilliseconds)
		return
	}
	ms := max(int64(wait/time.Millisecond), 1)
	if time.Duration(ms)*time.Millisecond < wait {
		ms++
	}
	for _, line := range h[keyRetryAfter] {
		if seconds, ok := parseDigits(line); ok {
			set := min(seconds, maxWait) * 1000
			if finer, ok := finer(h, seconds); ok {
				set = finer
			}
			ms = max(ms, set)
		}
	}
	h[keyMilliseconds] = []string{strconv.FormatInt(min(ms, maxWait*1000), 10)}
}

// finer returns the wait of Retry-After-Ms if it tells more exactly what a Retry-After of some seconds tells.
func finer(h http.Header, seconds int64) (ms int64, ok bool) {
	lines := h[keyMilliseconds]
	if len(lines) != 1 {
		return 0, false
	}
	ms, _, ok = parseDecimal(strings.Trim(lines[0], " \t"))
	return ms, ok && seconds <= maxInteger/1000 && ms <= seconds*1000 && ms > (seconds-1)*1000
}

// retrySeconds returns the wait as Retry-After carries it, or false for Never.
func retrySeconds(wait time.Duration) (int64, bool) {
	if wait == Never {
		return 0, false
	}
	return waitSeconds(wait), true
}

// waitSeconds returns the wait in seconds, at least 1 and at most maxWait.
func waitSeconds(wait time.Duration) int64 {
	return min(max(ceilSeconds(wait), 1), maxWait)
}

// longestWait returns the seconds of the wait, or of a longer one in h. It
// returns false for Never.
func longestWait(h http.Header, wait time.Duration) (int64, bool) {
	seconds, ok := retrySeconds(wait)
	if !ok {
		return 0, false
	}
	for _, line := range h[keyRetryAfter] {
		if set, ok := parseDigits(line); ok {
			seconds = max(seconds, min(set, maxWait))
		}
	}
	return seconds, true
}

// parseDigits reads 1*DIGIT. Unlike [strconv.ParseInt] it rejects other texts,
// such as "+5". A number above maxInteger becomes maxInteger.
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

// ceilSeconds returns d in seconds, rounded up, or 0 for a negative d. It adds
// nothing to d, because a sum near Never would overflow.
func ceilSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return max(seconds, 0)
}
