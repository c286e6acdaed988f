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
	// Draft, named "draft", sends the draft's RateLimit and RateLimit-Policy (sections 3 and 4). Times are in seconds.
	Draft Dialect = 1 << iota

	// SeparateFields, named "separate", sends RateLimit-Limit, -Remaining and -Reset of version 06, and RateLimit-Policy
	// of version 11. The reset is in seconds.
	SeparateFields

	// XRateLimit, named "x-ratelimit", sends X-RateLimit-Limit, -Remaining and -Reset. The reset is in Unix seconds.
	XRateLimit

	// Milliseconds, named "milliseconds", sends Retry-After-Ms beside Retry-After: the wait in whole milliseconds,
	// rounded up, from 1.
	Milliseconds
)

const defaultDialect = Draft | SeparateFields

// dialects describe the bits of a Dialect, from the lowest on, in the order in
// which Write writes them. All sizes and lists derive from this table: a bit
// without a row is unknown, and Write ignores it.
var dialects = [...]struct {
	name     string
	items    bool        // RateLimit
	policies bool        // RateLimit-Policy
	numbers  *scalarKeys // nil: none
	unix     bool        // the reset of numbers is in Unix seconds
}{
	{name: "draft", items: true, policies: true},
	{name: "separate", policies: true, numbers: &separateKeys},
	{name: "x-ratelimit", numbers: &xRateLimitKeys, unix: true},
	{name: "milliseconds"},
}

const allDialects = Dialect(1<<len(dialects) - 1)

// The Dialects that have each kind of fields.
var withItems, withPolicies, withNumbers Dialect

func init() {
	for i := range dialects {
		known, bit := &dialects[i], Dialect(1)<<i
		if known.items {
			withItems |= bit
		}
		if known.policies {
			withPolicies |= bit
		}
		if known.numbers != nil {
			withNumbers |= bit
		}
	}
}

// listOf returns the names of all dialects, as in "draft, separate, x-ratelimit or
// milliseconds".
func listOf(conjunction string) string {
	text := dialects[0].name
	for i := range dialects[1:] {
		separator := ", "
		if i == len(dialects)-2 {
			separator = " " + conjunction + " "
		}
		text += separator + dialects[i+1].name
	}
	return text
}

// ParseDialect reads names joined by commas, such as "draft,x-ratelimit". Unknown, repeated and missing names are errors.
func ParseDialect(s string) (Dialect, error) {
	var d Dialect
	var errs []error
	for part := range strings.SplitSeq(s, ",") {
		bit := dialectNamed(strings.Trim(part, " "))
		switch {
		case bit == 0:
			errs = append(errs, fmt.Errorf("headers: unknown dialect %.80q: want %s", part, listOf("or")))
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
	for i := range dialects {
		if dialects[i].name == name {
			return 1 << i
		}
	}
	return 0
}

// String returns the text that ParseDialect reads, and unknown bits in hexadecimal.
func (d Dialect) String() string {
	d = cmp.Or(d, defaultDialect)
	var names []string
	for i := range dialects {
		if d&(1<<i) != 0 {
			names = append(names, dialects[i].name)
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
		return fmt.Errorf("headers: dialect %q has unknown bits 0x%x: want %s, or a combination",
			d.String(), uint8(rest), listOf("or"))
	}
	return nil
}

// ExposeHeaders returns the names of all fields, for
// Access-Control-Expose-Headers.
func (d Dialect) ExposeHeaders() []string {
	d = cmp.Or(d, defaultDialect)
	var names []string
	if d&withItems != 0 {
		names = append(names, documented(keyRateLimit))
	}
	if d&withPolicies != 0 {
		names = append(names, documented(keyPolicy))
	}
	for i := range dialects {
		if keys := dialects[i].numbers; keys != nil && d&(1<<i) != 0 {
			names = append(names, documented(keys.limit), documented(keys.remaining), documented(keys.reset))
		}
	}
	if d&Milliseconds != 0 {
		names = append(names, keyMilliseconds)
	}
	return append(names, keyRetryAfter)
}
