package headers

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"time"
)

const (
	// maxInteger is the largest Integer of a structured field (RFC 9651
	// section 3.3.1).
	maxInteger = 999_999_999_999_999

	maxName = 64

	unitRequests   = "requests"            // the draft's default, and therefore never sent
	unitConcurrent = "concurrent-requests" // the draft's unit that has no window
)

// QuotaConfig says what a policy promises.
type QuotaConfig struct {
	// Name is what clients call the policy: 1 to 64 characters of 0x20 to
	// 0x7E. Names that are also tokens (letters, digits, and most of
	// punctuation) survive a change that the draft's authors consider.
	Name string

	// Limit is the most units that can be used at once: the burst of a
	// bucket, the requests of a window. 0 promises nothing to anybody.
	Limit int64

	// Requests per Window is the rate at which units come back. For windows
	// Requests equals Limit. A Limit of 0 needs no rate; if it has a Window,
	// that is sent as it is.
	Requests int64
	Window   time.Duration

	// Continuous is true if units come back one by one (a bucket), false if
	// they come back window by window.
	Continuous bool

	// Calendar says that windows are periods of the calendar, whose lengths
	// differ: Window is about as long as the longest. It is not sent, for
	// there is nothing true to say; what responses say of the time left is.
	Calendar bool

	// Unit is what is counted: "" and "requests" are requests. The draft
	// registers "content-bytes" and "concurrent-requests"; others are sent as
	// they are. Concurrent requests have neither Requests nor Window.
	Unit string
}

// A Quota is what a policy promises, rendered. It is safe for concurrent use,
// and what it promises never changes. [NewQuota] makes one; responses leave out
// nil and the zero value.
type Quota struct {
	name       string
	item       string   // the name as a String of RFC 9651; begins an item of RateLimit
	policy     []string // the value of RateLimit-Policy; cap is len, so that an append copies it
	limit      int64    // q
	window     int64    // w, in seconds; 0: none
	fill       time.Duration
	continuous bool
	ready      ready
}

// NewQuota returns the quota, or every mistake of the configuration at once.
//
// A refill that takes longer than a structured field can say (31 million
// years) is cut to that.
func NewQuota(c QuotaConfig) (*Quota, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	q := &Quota{
		name:       c.Name,
		item:       string(appendString(nil, c.Name)),
		limit:      c.Limit,
		continuous: c.Continuous,
	}
	q.window, q.fill = c.refill()
	q.policy = []string{string(q.appendPolicy(nil, c))}
	return q, nil
}

// Name returns the name of the policy, not escaped; "" for nil and the zero
// value.
func (q *Quota) Name() string {
	if q == nil {
		return ""
	}
	return q.name
}

// String returns the quota's item of RateLimit-Policy, e.g.
// `"default";q=100;w=60`; "" for nil and the zero value.
func (q *Quota) String() string {
	if !q.made() {
		return ""
	}
	return q.policy[0]
}

func (q *Quota) made() bool { return q != nil && q.policy != nil }

func (c *QuotaConfig) validate() error {
	var errs []error
	mistake := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("headers: quota %.80q: "+format, append([]any{c.Name}, args...)...))
	}
	if !printable(c.Name) {
		mistake("a name is 1 to %d characters of 0x20 to 0x7E", maxName)
	}
	if c.Unit != "" && !printable(c.Unit) {
		mistake("a unit is 1 to %d characters of 0x20 to 0x7E, got %.80q", maxName, c.Unit)
	}
	if c.Limit < 0 || c.Limit > maxInteger {
		mistake("a limit is 0 to %d, got \"%d\"", int64(maxInteger), c.Limit)
	}
	if c.Unit == unitConcurrent {
		if c.Requests != 0 || c.Window != 0 {
			mistake("concurrent requests have no rate, got \"%d/%v\"", c.Requests, c.Window)
		}
		return errors.Join(errs...)
	}
	if c.Requests < 0 || c.Window < 0 || c.Limit > 0 && (c.Requests == 0 || c.Window == 0) {
		mistake("a rate is positive requests per positive window, got \"%d/%v\"", c.Requests, c.Window)
	}
	if c.Limit > 0 && !c.Continuous && c.Limit != c.Requests {
		mistake("the limit of a window is its requests, got \"%d\" and \"%d\"", c.Limit, c.Requests)
	}
	return errors.Join(errs...)
}

// printable reports whether s can be a String of RFC 9651, not empty or long.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7E {
			return false
		}
	}
	return s != "" && len(s) <= maxName
}

// refill returns the time in which the rate makes the limit: in seconds as w
// says it, and exactly. Both are rounded up; neither may be an int64 product,
// which wraps for the refill of a large, slow bucket.
func (c *QuotaConfig) refill() (int64, time.Duration) {
	if c.Window == 0 {
		return 0, 0
	}
	if c.Limit == 0 {
		return ceilSeconds(c.Window), 0
	}
	hi, lo := bits.Mul64(uint64(c.Limit), uint64(c.Window))
	hi, lo = divCeil(hi, lo, uint64(c.Requests))
	fill := time.Duration(math.MaxInt64)
	if hi == 0 && lo < math.MaxInt64 {
		fill = time.Duration(lo)
	}
	// Rounding up twice is rounding up once: the divisors are integers.
	hi, lo = divCeil(hi, lo, uint64(time.Second))
	if hi > 0 || lo > maxInteger {
		return maxInteger, fill
	}
	return int64(lo), fill
}

// appendPolicy appends the item, its parameters in the draft's order.
func (q *Quota) appendPolicy(buf []byte, c QuotaConfig) []byte {
	buf = append(buf, q.item...)
	buf = append(buf, ";q="...)
	buf = strconv.AppendInt(buf, q.limit, 10)
	if c.Unit != "" && c.Unit != unitRequests {
		buf = append(buf, ";qu="...)
		buf = appendString(buf, c.Unit)
	}
	if q.window > 0 && !c.Calendar {
		buf = append(buf, ";w="...)
		buf = strconv.AppendInt(buf, q.window, 10)
	}
	return buf
}

// appendString appends s, which is printable, as RFC 9651 section 4.1.6 does.
func appendString(buf []byte, s string) []byte {
	buf = append(buf, '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			buf = append(buf, '\\')
		}
		buf = append(buf, s[i])
	}
	return append(buf, '"')
}

// divCeil returns (hi, lo) / y, rounded up; y is not 0.
func divCeil(hi, lo, y uint64) (uint64, uint64) {
	qhi, rem := hi/y, hi%y
	qlo, rem := bits.Div64(rem, lo, y)
	if rem == 0 {
		return qhi, qlo
	}
	qlo, carry := bits.Add64(qlo, 1, 0)
	return qhi + carry, qlo
}
