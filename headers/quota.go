package headers

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

const (
	// maxInteger is the largest Integer of a structured field (RFC 9651
	// section 3.3.1).
	maxInteger = 999_999_999_999_999

	maxName = 64 // longest name or unit; the draft has no bound

	unitRequests   = "requests"            // the draft's default, and therefore never sent
	unitConcurrent = "concurrent-requests" // the draft's unit that has no window
)

// A QuotaConfig describes a policy's promise. The zero value is invalid.
type QuotaConfig struct {
	// Name is the policy's name for clients: 1 to 64 characters of 0x20 to 0x7E.
	Name string

	// Limit is q, a bucket's burst or a window's requests: up to 999999999999999. 0 denies every request.
	Limit int64

	// Requests per Window is the rate. Both are positive, except with a Limit of 0 and for concurrent requests.
	Requests int64
	Window   time.Duration

	// Continuous is true if units return one by one (a bucket).
	Continuous bool

	// Calendar is true for periods of the calendar. Window is the longest of them, and Write sends no w.
	Calendar bool

	// Unit is "" or "requests", "content-bytes", "concurrent-requests" (without Requests and Window), or another text
	// with the bounds of Name.
	Unit string
}

// A Quota is a policy's promise. Make it once with [NewQuota], or with [Quota.Set] for a limit that changes with each
// request. Write omits nil and the zero value. A Quota is safe for concurrent use, except of Set. Do not copy it.
type Quota struct {
	name, unit string
	limit      int64 // q
	window     int64 // w, in seconds; 0: none
	fill       time.Duration
	continuous bool
	calendar   bool
	prepared   *prepared // nil: Write composes the texts
}

// prepared are the texts of a quota that is written often.
type prepared struct {
	item   string   // the name as a String of RFC 9651; begins an item of RateLimit
	policy []string // the value of RateLimit-Policy; cap is len, so that an append copies it
	limit  []string // the same for the limit of the scalar fields
	ready  ready
	pairs  readyPairs
}

// NewQuota returns the quota of a configuration. The error joins all misconfigurations.
func NewQuota(c QuotaConfig) (*Quota, error) {
	q := new(Quota)
	if err := q.Set(c); err != nil {
		return nil, err
	}
	q.prepared = &prepared{
		item:   string(appendString(nil, c.Name)),
		policy: []string{string(q.appendPolicy(nil))},
		limit:  []string{strconv.FormatInt(c.Limit, 10)},
	}
	return q, nil
}

// Set makes q the quota of another configuration, without an allocation, also after a Write. An error leaves q unchanged.
func (q *Quota) Set(c QuotaConfig) error {
	if err := c.validate(); err != nil {
		return err
	}
	*q = Quota{name: c.Name, unit: c.Unit, limit: c.Limit, continuous: c.Continuous, calendar: c.Calendar}
	q.window, q.fill = c.refill()
	return nil
}

func (q *Quota) made() bool { return q != nil && q.name != "" }

// validate reports every misconfiguration. Without any, it allocates nothing.
func (c *QuotaConfig) validate() error {
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("headers: quota %.80q: "+format, append([]any{c.Name}, args...)...))
	}
	if !printable(c.Name) {
		wrong("bad name: want 1 to %d characters of 0x20 to 0x7E", maxName)
	}
	if c.Unit != "" && !printable(c.Unit) {
		wrong("bad unit %.80q: want 1 to %d characters of 0x20 to 0x7E", c.Unit, maxName)
	}
	if c.Limit < 0 || c.Limit > maxInteger {
		wrong("bad limit \"%d\": want 0 to %d", c.Limit, int64(maxInteger))
	}
	if c.Unit == unitConcurrent {
		if c.Requests != 0 || c.Window != 0 {
			wrong("concurrent requests have no rate, got \"%d/%v\": leave out Requests and Window", c.Requests, c.Window)
		}
		return errors.Join(errs...)
	}
	if c.Requests < 0 || c.Window < 0 || c.Limit > 0 && (c.Requests == 0 || c.Window == 0) {
		wrong("bad rate \"%d/%v\": want positive Requests and a positive Window", c.Requests, c.Window)
	}
	if c.Limit > 0 && !c.Continuous && c.Limit != c.Requests {
		wrong("a window's limit \"%d\" differs from its requests \"%d\": make them equal", c.Limit, c.Requests)
	}
	return errors.Join(errs...)
}

// printable reports whether s can be a String of RFC 9651, neither empty nor
// longer than maxName.
func printable(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7E })
}

// refill returns the time in which the rate makes the limit: w in seconds, and
// the same in nanoseconds. Both are rounded up. The product of a large, slow
// bucket does not fit into 64 bits, so refill computes with 128.
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
	// Rounding up twice equals rounding up once, because the divisors are
	// integers.
	hi, lo = divCeil(hi, lo, uint64(time.Second))
	if hi > 0 || lo > maxInteger {
		return maxInteger, fill
	}
	return int64(lo), fill
}

// appendPolicy appends the item of RateLimit-Policy (section 3 of the draft), its
// parameters in the draft's order.
func (q *Quota) appendPolicy(buf []byte) []byte {
	if q.prepared != nil {
		return append(buf, q.prepared.policy[0]...)
	}
	buf = appendString(buf, q.name)
	buf = append(buf, ";q="...)
	buf = strconv.AppendInt(buf, q.limit, 10)
	if q.unit != "" && q.unit != unitRequests {
		buf = append(buf, ";qu="...)
		buf = appendString(buf, q.unit)
	}
	if q.window > 0 && !q.calendar {
		buf = append(buf, ";w="...)
		buf = strconv.AppendInt(buf, q.window, 10)
	}
	return buf
}

func (q *Quota) appendName(buf []byte) []byte {
	if q.prepared != nil {
		return append(buf, q.prepared.item...)
	}
	return appendString(buf, q.name)
}

// appendString appends s as a String (RFC 9651 section 4.1.6). s must be
// printable: then Go escapes the same two characters.
func appendString(buf []byte, s string) []byte { return strconv.AppendQuote(buf, s) }

// divCeil returns (hi, lo) / y, rounded up. y must not be 0.
func divCeil(hi, lo, y uint64) (uint64, uint64) {
	qhi, rem := hi/y, hi%y
	qlo, rem := bits.Div64(rem, lo, y)
	if rem == 0 {
		return qhi, qlo
	}
	qlo, carry := bits.Add64(qlo, 1, 0)
	return qhi + carry, qlo
}
