package headers_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/headers"
)

// A subject is a State and the configuration of its Quota. An audit computes with
// big fractions where the writer computes with integers.
type subject struct {
	config headers.QuotaConfig
	state  headers.State
}

// audit reads the fields that Write has written into an empty header, and returns
// an error if they are wrong.
func audit(d headers.Dialect, subjects []subject, resp headers.Response, h http.Header) error {
	if d == 0 {
		d = headers.Draft | headers.SeparateFields
	}
	want := subjects
	if resp.Denied {
		want = nil
		for _, s := range subjects {
			if s.state.Denied {
				want = append(want, s)
			}
		}
	} else {
		want = slices.Clone(want)
		slices.SortStableFunc(want, func(a, b subject) int { return cmp.Compare(a.remaining(), b.remaining()) })
	}
	if d&headers.Draft == 0 {
		want = nil
	}
	limits, err := readLimits(h["Ratelimit"])
	if err != nil || len(limits) != len(want) {
		return fmt.Errorf("got items %+v, %v, want %d", limits, err, len(want))
	}
	for i, s := range want {
		if err := s.auditItem(resp.Denied, limits[i]); err != nil {
			return fmt.Errorf("item %d of %q: %w", i, h["Ratelimit"], err)
		}
	}
	policies, err := readPolicies(h["Ratelimit-Policy"])
	if err != nil || d&(headers.Draft|headers.SeparateFields) != 0 && len(policies) != len(subjects) {
		return fmt.Errorf("got policies %+v, %v, want %d", policies, err, len(subjects))
	}
	for i, p := range policies {
		if c := subjects[i].config; p.name != c.Name || p.q != c.Limit || p.w != subjects[i].window() {
			return fmt.Errorf("got policy %+v of %+v", p, c)
		}
	}
	return errors.Join(auditRetryAfter(resp, limits, h), auditForm(h))
}

func (s subject) remaining() int64 { return min(max(s.state.Remaining, 0), s.config.Limit) }

// refill is the time in which the rate makes the limit, in seconds.
func (s subject) refill() *big.Rat {
	units := big.NewInt(s.config.Limit)
	units.Mul(units, big.NewInt(int64(s.config.Window)))
	return new(big.Rat).SetFrac(units, new(big.Int).Mul(big.NewInt(s.config.Requests), big.NewInt(1e9)))
}

// window is w, or absent.
func (s subject) window() int64 {
	switch {
	case s.config.Window == 0:
		return absent
	case s.config.Limit == 0:
		return max(1, ceil(seconds(s.config.Window)))
	}
	return min(ceil(s.refill()), 999_999_999_999_999)
}

// auditItem has the draft's r and t as DESIGN defines them.
func (s subject) auditItem(isDenied bool, got limitItem) error {
	want := limitItem{name: s.config.Name, r: s.remaining(), t: absent}
	w := s.window()
	switch {
	case s.config.Limit == 0 || w == absent:
	case isDenied:
		if s.state.RetryAfter != headers.Never {
			want.t = min(max(ceil(seconds(s.state.RetryAfter)), 1), maxWait)
		}
	case want.r == 0:
		if s.state.UnitAfter != headers.Never {
			want.t = min(max(ceil(seconds(s.state.UnitAfter)), 1), maxWait)
		}
	default:
		lasts := seconds(s.state.ResetAfter)
		if s.config.Continuous {
			// To a nanosecond, and as far as a Duration goes.
			fill := new(big.Rat).SetInt64(ceil(new(big.Rat).Mul(s.refill(), big.NewRat(1e9, 1))))
			if most := new(big.Rat).SetInt64(int64(headers.Never)); fill.Cmp(most) > 0 {
				fill = most
			}
			lasts = new(big.Rat).Sub(fill.Quo(fill, big.NewRat(1e9, 1)), seconds(max(s.state.ResetAfter, 0)))
		}
		pace := new(big.Rat).Mul(big.NewRat(want.r, s.config.Limit), new(big.Rat).SetInt64(w))
		want.t = max(ceil(lasts), ceil(pace))
		// W26: r/t never promises more than q/w.
		rw := new(big.Int).Mul(big.NewInt(got.r), big.NewInt(w))
		if qt := new(big.Int).Mul(big.NewInt(s.config.Limit), big.NewInt(got.t)); rw.Cmp(qt) > 0 {
			return fmt.Errorf("r·w = %v > q·t = %v", rw, qt)
		}
	}
	if got != want {
		return fmt.Errorf("got %+v, want %+v", got, want)
	}
	return nil
}

// auditRetryAfter has W27 and the other rules of Retry-After.
func auditRetryAfter(resp headers.Response, limits []limitItem, h http.Header) error {
	longest := resp.RetryAfter
	var timed []time.Duration // the waits of items that have a t
	item := 0
	for _, s := range resp.States {
		if !s.Denied {
			continue
		}
		longest = max(longest, s.RetryAfter)
		if item < len(limits) && limits[item].t != absent {
			timed = append(timed, s.RetryAfter)
		}
		item++
	}
	lines := h["Retry-After"]
	if !resp.Denied || longest == headers.Never {
		if len(lines) > 0 {
			return fmt.Errorf("got Retry-After %q, want none", lines)
		}
		return nil
	}
	want := min(max(ceil(seconds(longest)), 1), maxWait)
	if len(lines) != 1 || lines[0] != strconv.FormatInt(want, 10) {
		return fmt.Errorf("got Retry-After %q, want %d", lines, want)
	}
	largest := int64(0)
	for _, l := range limits {
		if l.t > want {
			return fmt.Errorf("got Retry-After %d before t=%d", want, l.t)
		}
		largest = max(largest, l.t)
	}
	if slices.Contains(timed, longest) && largest != want {
		return fmt.Errorf("got Retry-After %d and t=%d, want both equal", want, largest)
	}
	return nil
}

// auditForm has the rules of all fields: keys are canonical, lines are visible
// ASCII, and scalars are one non-negative integer.
func auditForm(h http.Header) error {
	for key, lines := range h {
		if key != http.CanonicalHeaderKey(key) || len(lines) != 1 {
			return fmt.Errorf("got %d lines of %s", len(lines), key)
		}
		for _, c := range []byte(lines[0]) {
			if c < 0x20 || c > 0x7E {
				return fmt.Errorf("got byte %#x in %s", c, key)
			}
		}
		if key == "Ratelimit" || key == "Ratelimit-Policy" {
			continue
		}
		if n, err := strconv.ParseInt(lines[0], 10, 64); err != nil || n < 0 {
			return fmt.Errorf("got %s: %q", key, lines[0])
		}
	}
	for _, family := range []string{"Ratelimit-", "X-Ratelimit-"} {
		limit, hasLimit := h[family+"Limit"]
		remaining, hasRemaining := h[family+"Remaining"]
		if _, hasReset := h[family+"Reset"]; hasLimit != hasRemaining || hasReset && !hasLimit {
			return fmt.Errorf("got half of the fields %s*", family)
		}
		if hasLimit && len(remaining[0]) > len(limit[0]) {
			return fmt.Errorf("got %s remaining of %s", remaining[0], limit[0])
		}
	}
	return nil
}

func seconds(d time.Duration) *big.Rat { return big.NewRat(int64(d), 1e9) }

// ceil rounds up, and saturates far beyond the range of a field.
func ceil(r *big.Rat) int64 {
	n := new(big.Int).Neg(r.Num())
	n.Div(n, r.Denom()) // Euclidean: floor, because the denominator is positive
	n.Neg(n)
	if !n.IsInt64() {
		return int64(headers.Never)
	}
	return n.Int64()
}
