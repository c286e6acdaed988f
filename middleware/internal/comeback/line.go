package comeback

import (
	"math"
	"math/bits"

	"github.com/penstock-go/penstock/algorithms"
)

// A place is what a line needs to know of a denial. Instants are µs since the table was made.
type place struct {
	line        uint64 // the hash of the policy and its key
	now, honest int64  // the limit can admit the request at honest
	cost        int64  // at least 1
	limit       algorithms.Limit
	instances   int64 // that share the limit
	later       int64 // of a client: at most this much later than honest
}

// A line ends at + rest/requests µs.
type line struct{ at, rest, requests int64 }

// under returns the line of a limit that may have changed.
func (l line) under(limit algorithms.Limit) line {
	if requests := limit.Requests(); l.requests != requests {
		return line{at: l.ceil(), requests: requests}
	}
	return l
}

// plus returns the line after units more, or one that ends too late for everyone.
func (l line) plus(limit algorithms.Limit, units int64) line {
	hi, lo := bits.Mul64(uint64(units), uint64(limit.Window().Microseconds()))
	lo, carry := bits.Add64(lo, uint64(l.rest), 0)
	if hi += carry; hi >= uint64(l.requests) {
		return line{at: math.MaxInt64, requests: l.requests}
	}
	whole, rest := bits.Div64(hi, lo, uint64(l.requests))
	if whole > uint64(math.MaxInt64-l.at) {
		return line{at: math.MaxInt64, requests: l.requests}
	}
	return line{at: l.at + int64(whole), rest: int64(rest), requests: l.requests}
}

func (l line) ceil() int64 {
	if l.rest > 0 {
		return l.at + 1
	}
	return l.at
}
