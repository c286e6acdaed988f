package headers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Dialect is a set of header families, joined with |. The zero value means
// Draft|SeparateFields. Retry-After belongs to every Dialect.
type Dialect uint8

const (
	// Draft, named "draft", sends the draft's RateLimit and RateLimit-Policy (sections 3 and 4). Times are in seconds.
	Draft Dialect = 1 << iota

	// SeparateFields, named "separate", sends RateLimit-Limit, -Remaining and -Reset of version 06, and RateLimit-Policy
	// of version 11. The reset is in seconds.
	SeparateFields

	// XRateLimit, named "x-ratelimit", sends X-RateLimit-Limit, -Remaining and -Reset. The reset is in Unix seconds.
	XRateLimit

	// Milliseconds, named "milliseconds", sends Retry-After-Ms beside Retry-After: the wait in whole milliseconds.
	Milliseconds
)

const defaultDialect = Draft | SeparateFields

// dialectNames are the names of the bits of a Dialect, from the lowest on. A bit without a name is unknown, and Write
// ignores it.
var dialectNames = [...]string{"draft", "separate", "x-ratelimit", "milliseconds"}

const allDialects = Dialect(1<<len(dialectNames) - 1)

// The Dialects that have each kind of fields. Only Draft has RateLimit.
const (
	withPolicies = Draft | SeparateFields
	withNumbers  = SeparateFields | XRateLimit
)

// wantNames ends the error about a Dialect that does not exist.
var wantNames = "want " + strings.Join(dialectNames[:len(dialectNames)-1], ", ") + " or " + dialectNames[len(dialectNames)-1]

// ParseDialect reads names joined by commas, such as "draft,x-ratelimit". Unknown, repeated and missing names are errors.
func ParseDialect(s string) (Dialect, error) {
	var d Dialect
	var errs []error
	for part := range strings.SplitSeq(s, ",") {
		i := slices.Index(dialectNames[:], strings.Trim(part, " "))
		switch {
		case i < 0:
			errs = append(errs, fmt.Errorf("headers: unknown dialect %.80q: %s", part, wantNames))
		case d&(1<<i) != 0:
			errs = append(errs, fmt.Errorf("headers: dialect %q is listed twice: list it once", dialectNames[i]))
		default:
			d |= 1 << i
		}
	}
	if len(errs) > 0 {
		return 0, errors.Join(errs...)
	}
	return d, nil
}

// String returns the text that ParseDialect reads, and unknown bits in hexadecimal.
func (d Dialect) String() string {
	d = cmp.Or(d, defaultDialect)
	var names []string
	for i, name := range dialectNames {
		if d&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if rest := d &^ allDialects; rest != 0 {
		names = append(names, "0x"+strconv.FormatUint(uint64(rest), 16))
	}
	return strings.Join(names, ",")
}

// Validate returns an error for unknown bits, which [Dialect.Write] ignores.
func (d Dialect) Validate() error {
	if rest := d &^ allDialects; rest != 0 {
		return fmt.Errorf("headers: dialect %q has unknown bits 0x%x: %s, or a combination", d.String(), uint8(rest), wantNames)
	}
	return nil
}

// ExposeHeaders returns the names of all fields, for
// Access-Control-Expose-Headers.
func (d Dialect) ExposeHeaders() []string {
	d = cmp.Or(d, defaultDialect)
	var names []string
	if d&Draft != 0 {
		names = append(names, documented(keyRateLimit))
	}
	if d&withPolicies != 0 {
		names = append(names, documented(keyPolicy))
	}
	for _, keys := range scalarFamilies {
		if d&keys.dialect != 0 {
			names = append(names, documented(keys.limit), documented(keys.remaining), documented(keys.reset))
		}
	}
	if d&Milliseconds != 0 {
		names = append(names, keyMilliseconds)
	}
	return append(names, keyRetryAfter)
}
