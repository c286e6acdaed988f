package headers

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Dialect is a set of header families, joined with |. The zero value means
// Draft|SeparateFields. Retry-After belongs to every Dialect.
type Dialect uint8

const (
	// Draft sends the draft's RateLimit and RateLimit-Policy (sections 3 and 4).
	// Times are in seconds from now. Its name is "draft".
	Draft Dialect = 1 << iota

	// SeparateFields sends RateLimit-Limit, RateLimit-Remaining and
	// RateLimit-Reset of version 06, and RateLimit-Policy of version 11. The reset
	// is in seconds. Its name is "separate".
	SeparateFields

	// XRateLimit sends X-RateLimit-Limit, X-RateLimit-Remaining and
	// X-RateLimit-Reset, as GitHub does. The reset is in Unix seconds. Its name is
	// "x-ratelimit".
	XRateLimit
)

const allDialects = Draft | SeparateFields | XRateLimit

// dialects names the bits, in the order in which Write writes them.
var dialects = [...]struct {
	bit  Dialect
	name string
}{{Draft, "draft"}, {SeparateFields, "separate"}, {XRateLimit, "x-ratelimit"}}

// ParseDialect reads names joined by commas, such as "draft,x-ratelimit".
// Unknown, repeated and missing names are errors.
func ParseDialect(s string) (Dialect, error) {
	var d Dialect
	var errs []error
	for part := range strings.SplitSeq(s, ",") {
		bit := dialectNamed(strings.Trim(part, " "))
		switch {
		case bit == 0:
			errs = append(errs, fmt.Errorf("headers: unknown dialect %.80q: want draft, separate or x-ratelimit", part))
		case d&bit != 0:
			errs = append(errs, fmt.Errorf("headers: dialect %q is listed twice: list it once", bit))
		}
		d |= bit
	}
	if len(errs) > 0 {
		return 0, errors.Join(errs...)
	}
	return d, nil
}

func dialectNamed(name string) Dialect {
	for _, known := range dialects {
		if known.name == name {
			return known.bit
		}
	}
	return 0
}

// String returns the text that ParseDialect reads, and unknown bits as a
// hexadecimal number.
func (d Dialect) String() string {
	d = cmp.Or(d, defaultDialect)
	var names []string
	for _, known := range dialects {
		if d&known.bit != 0 {
			names = append(names, known.name)
		}
	}
	if rest := d &^ allDialects; rest != 0 {
		names = append(names, "0x"+strconv.FormatUint(uint64(rest), 16))
	}
	return strings.Join(names, ",")
}

// Validate returns an error for unknown bits of d, which [Dialect.Write]
// ignores.
func (d Dialect) Validate() error {
	if rest := d &^ allDialects; rest != 0 {
		return fmt.Errorf("headers: dialect %q has unknown bits 0x%x: combine Draft, SeparateFields and XRateLimit only",
			d.String(), uint8(rest))
	}
	return nil
}

// ExposeHeaders returns the names of all fields, for
// Access-Control-Expose-Headers.
func (d Dialect) ExposeHeaders() []string {
	d = cmp.Or(d, defaultDialect)
	var names []string
	if d&Draft != 0 {
		names = append(names, "RateLimit")
	}
	if d&(Draft|SeparateFields) != 0 {
		names = append(names, "RateLimit-Policy")
	}
	if d&SeparateFields != 0 {
		names = append(names, "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
	}
	if d&XRateLimit != 0 {
		names = append(names, "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
	}
	return append(names, "Retry-After")
}

const defaultDialect = Draft | SeparateFields
