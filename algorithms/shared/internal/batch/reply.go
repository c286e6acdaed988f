// The reply of the Lua script: lua/prelude.lua has the layout.

package batch

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

// read gives every group its part of the reply. If the reply cannot be read, it
// returns an error, and the answers of the groups mean nothing.
func (s *script) read(reply any) error {
	data, _ := reply.(string)
	failures, _ := reply.([]any)
	if len(failures) > 0 {
		data, _ = failures[0].(string)
		failures = failures[1:]
	}
	r := doubles{data: data}
	now := r.next()
	if s.now > 0 {
		now = r.next()
	}
	for _, g := range s.groups {
		if r.peek() < 0 {
			if r.next(); len(failures) == 0 {
				return trouble.ErrReply
			}
			g.err = fmt.Errorf("%w: %w", trouble.ErrStoredKey, trouble.ScriptError(fmt.Sprint(failures[0])))
			failures = failures[1:]
			continue
		}
		for _, it := range g.Items {
			it.Now, it.Answer = now, r.answer()
		}
	}
	if r.short || r.data != "" || len(failures) > 0 {
		return trouble.ErrReply
	}
	return nil
}

// Flags of an answer.
const (
	flagAllowed = 1 << iota
	flagMissing
	flagCharged
	flagInstants // two instants follow
	flagFraction // f follows
	flags        = iota
)

// doubles are the doubles of a reply that have not been read.
type doubles struct {
	data  string
	short bool // more were read than there are
}

// peek returns the next double, or 0 if there is none.
func (r *doubles) peek() int64 {
	if len(r.data) < 8 {
		return 0
	}
	return int64(math.Float64frombits(binary.LittleEndian.Uint64([]byte(r.data[:8]))))
}

// next reads a double.
func (r *doubles) next() int64 {
	v := r.peek()
	r.short = r.short || len(r.data) < 8
	r.data = r.data[min(8, len(r.data)):]
	return v
}

// answer reads an answer.
func (r *doubles) answer() step.Answer {
	v := r.next()
	a := step.Answer{
		Allowed: v&flagAllowed != 0, Missing: v&flagMissing != 0, Charged: v&flagCharged != 0,
		N: v >> flags, T: r.next(),
	}
	if v&flagInstants != 0 {
		a.RetryAt, a.UnitAt = r.next(), r.next()
	}
	if v&flagFraction != 0 {
		a.F = r.next()
	}
	return a
}
