package headers

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Dialect is the set of header families that responses carry. It is a bit
// set: Draft|X sends both. The zero value means Draft|Triple.
type Dialect uint8

const (
	// Draft is RateLimit and RateLimit-Policy in the syntax of
	// draft-ietf-httpapi-ratelimit-headers-11 (work in progress).
	Draft Dialect = 1 << iota

	// Triple is RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset of
	// that draft's versions up to -06, with -Reset in seconds from now, and
	// RateLimit-Policy as in Draft.
	Triple

	// X is X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset as
	// GitHub made them popular, with -Reset in seconds of the Unix epoch. No
	// specification defines them.
	X
)

const allDialects = Draft | Triple | X

// dialects names the bits, in the order in which they are written.
var dialects = [...]struct {
	bit  Dialect
	name string
}{{Draft, "draft"}, {Triple, "triple"}, {X, "x"}}

// ParseDialect reads names joined by commas, such as "draft,triple,x". Spaces
// around a name are allowed. The error names every part that is no dialect; the
// empty text is an error, too, since it could mean the default or nothing.
func ParseDialect(s string) (Dialect, error) {
	var d Dialect
	var errs []error
	for part := range strings.SplitSeq(s, ",") {
		bit := dialectNamed(strings.Trim(part, " "))
		if bit == 0 {
			errs = append(errs, fmt.Errorf("headers: unknown dialect %q: want draft, triple or x", part))
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

// String returns what [ParseDialect] reads, e.g. "draft,triple", which is also
// the text of the zero value. Unknown bits follow as a number.
func (d Dialect) String() string {
	d = d.orDefault()
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

// Validate returns an error if d has bits that are no dialect. Write ignores
// such bits.
func (d Dialect) Validate() error {
	if d&^allDialects != 0 {
		return fmt.Errorf("headers: unknown bits in dialect %q: want any of draft, triple and x", d.String())
	}
	return nil
}

// ExposeHeaders returns the names of the fields that [Dialect.Write] may set,
// for Access-Control-Expose-Headers (none of them is CORS-safelisted). The
// caller owns the slice.
func (d Dialect) ExposeHeaders() []string {
	d = d.orDefault()
	var names []string
	if d&Draft != 0 {
		names = append(names, "RateLimit")
	}
	if d&(Draft|Triple) != 0 {
		names = append(names, "RateLimit-Policy")
	}
	if d&Triple != 0 {
		names = append(names, "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
	}
	if d&X != 0 {
		names = append(names, "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
	}
	return append(names, "Retry-After")
}

func (d Dialect) orDefault() Dialect {
	if d == 0 {
		return Draft | Triple
	}
	return d
}
