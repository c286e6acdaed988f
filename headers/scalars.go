package headers

import (
	"math/bits"
	"net/http"
	"strconv"
	"time"
)

// scalarKeys are the keys of a family of three scalar fields.
type scalarKeys struct {
	limit, remaining, reset string
	dialect                 Dialect
	unix                    bool // the reset is in Unix seconds
}

var (
	separateKeys   = scalarKeys{"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", SeparateFields, false}
	xRateLimitKeys = scalarKeys{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", XRateLimit, true}
)

// scalarFamilies are all families, in the order in which Write writes them.
var scalarFamilies = [...]*scalarKeys{&separateKeys, &xRateLimitKeys}

// numbers are the values of a family of scalar fields.
type numbers struct {
	limit, remaining int64
	reset            int64 // in seconds from now, or in Unix seconds
	resets           bool  // false: the family has no reset
}

// tightest returns the State that the scalars describe, or nil.
func (resp *Response) tightest() *State {
	var tight *State
	for i := range resp.States {
		s := &resp.States[i]
		if s.listed(resp.Denied) && (tight == nil || s.tighter(tight, resp.Denied)) {
			tight = s
		}
	}
	return tight
}

func (s *State) tighter(than *State, denied bool) bool {
	if denied {
		return s.RetryAfter > than.RetryAfter
	}
	return nearer(s.remaining(), s.Quota.limit, than.remaining(), than.Quota.limit)
}

// numbers returns the numbers of s. The reset of a denial is its Retry-After, as
// the drafts up to version 06 require.
func (s *State) numbers(resp *Response, unix bool) numbers {
	n := numbers{limit: s.Quota.limit, remaining: s.remaining()}
	switch {
	case resp.Denied:
		n.reset, n.resets = retrySeconds(s.RetryAfter)
	case n.remaining == 0: // clients wait for this reset
		n.reset, n.resets = min(ceilSeconds(s.ResetAfter), maxWait), s.ResetAfter != Never
	default:
		n.reset, n.resets = ceilSeconds(s.ResetAfter), s.ResetAfter != Never
	}
	if unix {
		return n.since(resp.Now)
	}
	return n
}

// since returns n with the reset in Unix seconds, or without a reset if now is
// unknown. It rounds now up, so that a client that subtracts the time never waits
// for less than n.reset.
func (n numbers) since(now time.Time) numbers {
	if now.Unix() < 0 { // the zero time is before 1970, too
		n.resets = false
		return n
	}
	n.reset += now.Unix()
	if now.Nanosecond() > 0 {
		n.reset++
	}
	return n
}

// scalars appends the values of keys, unless the values of an outer limiter stay.
func (f *fields) scalars(buf []byte, h http.Header, keys *scalarKeys, q *Quota, n numbers, denied bool) []byte {
	if !denied && n.yields(h, keys) {
		return buf
	}
	if q.prepared != nil {
		h[keys.limit] = q.prepared.limit
	} else {
		buf = strconv.AppendInt(buf, n.limit, 10)
		f.end(keys.limit, buf)
	}
	buf = strconv.AppendInt(buf, n.remaining, 10)
	f.end(keys.remaining, buf)
	if !n.resets {
		delete(h, keys.reset) // an outer limiter's reset would not belong to these numbers
		return buf
	}
	buf = strconv.AppendInt(buf, n.reset, 10)
	f.end(keys.reset, buf)
	return buf
}

// yields reports whether h has numbers that are at least as near to their limit
// as n. It reports false for numbers that do not parse.
func (n numbers) yields(h http.Header, keys *scalarKeys) bool {
	limit, ok := digitsIn(h, keys.limit)
	if !ok {
		return false
	}
	remaining, ok := digitsIn(h, keys.remaining)
	return ok && !nearer(n.remaining, n.limit, remaining, limit)
}

// digitsIn returns the number in h under a key, if that is its only line.
func digitsIn(h http.Header, key string) (int64, bool) {
	if lines := h[key]; len(lines) == 1 {
		return parseDigits(lines[0])
	}
	return 0, false
}

// deleteNumbers deletes what is left of limits, in all dialects.
func deleteNumbers(h http.Header) {
	delete(h, keyRateLimit)
	for _, keys := range scalarFamilies {
		delete(h, keys.limit)
		delete(h, keys.remaining)
		delete(h, keys.reset)
	}
}

// nearer reports whether r1/q1 < r2/q2, exactly. A limit of 0 counts as 0 left of
// 1, the nearest possible.
func nearer(r1, q1, r2, q2 int64) bool {
	if q1 == 0 {
		r1, q1 = 0, 1
	}
	hi1, lo1 := bits.Mul64(uint64(r1), uint64(q2))
	hi2, lo2 := bits.Mul64(uint64(r2), uint64(q1))
	return hi1 < hi2 || hi1 == hi2 && lo1 < lo2
}
