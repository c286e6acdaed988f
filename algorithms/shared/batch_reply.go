// The reply of the Lua script: lua/prelude.lua has the layout.

package shared

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

var errReply = errors.New("the reply is not the script's: is something between this process and Redis?")

// answered reports whether there is a reply of the script.
func (s *script) answered() bool {
	_, err := s.cmd.Slice()
	return err == nil
}

// read gives every group its part of the reply. If the reply cannot be read, it
// returns an error, and the answers of the groups mean nothing. It skips groups
// whose callers have left, because the callers may use their items again.
func (s *script) read(reply []any) error {
	if len(reply) == 0 {
		return errReply
	}
	data, ok := reply[0].(string)
	if !ok || len(data) < 8 {
		return errReply
	}
	now, data, failures := double(data), data[8:], reply[1:]
	if s.now.µs > 0 {
		if len(data) < 8 {
			return errReply
		}
		now, data = double(data), data[8:]
	}
	for _, g := range s.groups {
		if len(data) >= 8 && double(data) < 0 {
			if data = data[8:]; len(failures) == 0 {
				return errReply
			}
			g.err = fmt.Errorf("%w: %w", errStoredKey, scriptError(fmt.Sprint(failures[0])))
			failures = failures[1:]
			continue
		}
		for _, it := range g.items {
			a, rest, ok := readAnswer(data)
			if !ok {
				return errReply
			}
			if data = rest; !g.left {
				it.now, it.Answer = now, a
			}
		}
	}
	if data != "" || len(failures) > 0 {
		return errReply
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

// readAnswer reads the answer at the beginning of data. It reports whether there is one.
func readAnswer(data string) (a step.Answer, rest string, ok bool) {
	if len(data) < 2*8 {
		return a, "", false
	}
	v := double(data)
	a = step.Answer{
		Allowed: v&flagAllowed != 0,
		Missing: v&flagMissing != 0,
		Charged: v&flagCharged != 0,
		N:       v >> flags,
		T:       double(data[8:]),
	}
	data = data[2*8:]
	if v&flagInstants != 0 {
		if len(data) < 2*8 {
			return a, "", false
		}
		a.RetryAt, a.UnitAt, data = double(data), double(data[8:]), data[2*8:]
	}
	if v&flagFraction != 0 {
		if len(data) < 8 {
			return a, "", false
		}
		a.F, data = double(data), data[8:]
	}
	return a, data, true
}

func double(data string) int64 {
	return int64(math.Float64frombits(binary.LittleEndian.Uint64([]byte(data[:8]))))
}
