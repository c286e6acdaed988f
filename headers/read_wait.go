// Retry-After, and the instants and durations that stand for a reset.

package headers

import (
	"net/http"
	"strings"
	"time"
)

// milliseconds are the fields of Azure and AWS, in order of precedence.
var milliseconds = []string{keyMilliseconds, "X-Ms-Retry-After-Ms", "X-Amz-Retry-After"}

func (r *reading) wait(status int) {
	// Beside 2xx, Retry-After belongs to a poll.
	if wait, ok := r.retryAfter(); ok && status >= http.StatusMultipleChoices {
		r.Wait, r.From = wait, keyRetryAfter
		if ms, ok := finer(r.h, ceilSeconds(wait)); ok {
			r.Wait, r.From = time.Duration(ms)*time.Millisecond, keyMilliseconds
		}
		return
	}
	if status < http.StatusBadRequest {
		return
	}
	for _, key := range milliseconds {
		if ms, _, ok := parseDecimal(strings.Trim(r.h.Get(key), " \t")); ok {
			r.Wait, r.From = min(secondsOf(ms/1000), Never-time.Second)+time.Duration(ms%1000)*time.Millisecond, key
			return
		}
	}
	waitHelps := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
	for i := range r.Limits {
		l := &r.Limits[i]
		spent := l.Remaining == 0 || l.Remaining < 0 && waitHelps
		if spent && l.Within >= 0 && (r.From == "" || l.Within > r.Wait) {
			r.Wait, r.From = l.Within, r.sources[i]
		}
	}
}

// retryAfter reads Retry-After. The longest of several waits counts, because a client
// that obeys the shorter one would be early.
func (r *reading) retryAfter() (longest time.Duration, ok bool) {
	if _, found := r.line(keyRetryAfter, ","); !found {
		return 0, false
	}
	for _, line := range r.h[keyRetryAfter] {
		wait, valid := r.delay(strings.Trim(line, " \t"))
		if !valid {
			r.malformed(keyRetryAfter)
			continue
		}
		longest, ok = max(longest, wait), true
	}
	return longest, ok
}

// delay reads one line of Retry-After, also decimals, Unix times, and lines that a
// proxy has folded into one.
func (r *reading) delay(text string) (longest time.Duration, ok bool) {
	if n, ok := parseDigits(text); ok {
		return r.after(n), true
	}
	if date, ok := parseDate(text); ok {
		return max(date.Sub(r.now), 0), true
	}
	for part := range strings.SplitSeq(text, ",") {
		n, _, ok := parseDecimal(strings.Trim(part, " \t"))
		if !ok {
			return 0, false
		}
		longest = max(longest, r.after(n))
	}
	return longest, true
}

// parseDecimal reads 1*DIGIT, or 1*DIGIT "." 1*DIGIT. It returns the number rounded
// up and rounded down.
func parseDecimal(s string) (up, down int64, ok bool) {
	whole, fraction, decimal := strings.Cut(s, ".")
	down, ok = parseDigits(whole)
	_, valid := parseDigits(fraction)
	if !ok || decimal && !valid {
		return 0, 0, false
	}
	if strings.Trim(fraction, "0") != "" {
		return down + 1, down, true
	}
	return down, down, true
}

// layouts are dates that servers send besides the forms of RFC 9110. Go's layout reads any numeric offset.
var layouts = []string{
	"Mon, 02 Jan 2006 15:04:05 -0700", "Monday, 02-Jan-06 15:04:05 -0700",
	time.RFC3339, "2006-01-02T15:04Z07:00",
	"Mon Jan 02 2006 15:04:05 GMT-0700", // JavaScript's Date.toString
}

// parseDate reads the three forms of an HTTP-date (RFC 9110 section 5.6.7), and the other layouts. Go's parser rejects
// leap seconds, and reads any abbreviation of a zone as UTC; only names of UTC are accepted.
func parseDate(s string) (time.Time, bool) {
	before, after, leap := strings.Cut(s, ":60 ")
	if leap {
		s = before + ":59 " + after
	}
	t, ok := dateOf(s)
	if ok && leap {
		t = t.Add(time.Second)
	}
	return t, ok
}

func dateOf(s string) (time.Time, bool) {
	for _, zone := range []string{" UTC", " UT", " Z"} {
		if date, ok := strings.CutSuffix(s, zone); ok && strings.Contains(s, ",") {
			s = date + " GMT"
			break
		}
	}
	if !strings.Contains(s, ",") || strings.HasSuffix(s, " GMT") {
		if t, err := http.ParseTime(s); err == nil {
			return t, true
		}
	}
	if date, zone, ok := strings.Cut(s, " ("); ok && strings.HasSuffix(zone, ")") { // JavaScript names the zone
		s = date
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, strings.ToUpper(s)); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// after returns a number of seconds. A number from 10^9 on is a Unix time, from 10^11 on
// in milliseconds: no service means 30 years. From 10^14 on it is neither.
func (r *reading) after(n int64) time.Duration {
	switch {
	case n < 1e9 || n >= 1e14:
		return secondsOf(n)
	case n < 1e11:
		return max(time.Unix(n, 0).Sub(r.now), 0)
	}
	return max(time.UnixMilli(n).Sub(r.now), 0)
}

// resetAfter reads a reset, whose meaning nothing states: a number of seconds from
// now, a Unix time in seconds or milliseconds, a duration, or a date. The magnitude of
// a number decides.
func (r *reading) resetAfter(s string) (time.Duration, bool) {
	if n, _, ok := parseDecimal(s); ok {
		return r.after(n), n < 1e14
	}
	if strings.Trim(s, "0123456789.smh") == "" { // neither signs, nor the units that no service uses
		d, err := time.ParseDuration(s)
		return d, err == nil
	}
	t, ok := parseDate(s)
	return max(t.Sub(r.now), 0), ok
}
