// The reply of the Lua script: lua/prelude.lua has the layout.

package shared

import (
	"errors"
	"fmt"
	"math"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

var errReply = errors.New("the reply is not the script's: is something between this process and Redis?")

// read gives every group its part of the reply. If the reply cannot be read, it
// returns an error, and no group has an answer. Items of groups whose callers
// have left are skipped: their callers may use them.
func (s *script) read(reply []any) error {
	now, data, err := s.header(reply)
	if err != nil {
		return err
	}
	failures := reply[1:]
	for _, g := range s.groups {
		status := data[0]
		data = data[1:]
		if status != 0 {
			g.err = fmt.Errorf("%w: %w", errStoredKey, scriptError(fmt.Sprint(failures[0])))
			failures = failures[1:]
			continue
		}
		for _, it := range g.items {
			if !g.left {
				it.now, it.Answer = now, readAnswer(data)
			}
			data = data[sizeOfAnswer(data[0]):]
		}
	}
	return nil
}

// header returns the clock of a reply, and the answers. It makes sure that there
// is one for every check.
func (s *script) header(reply []any) (now int64, answers string, err error) {
	if len(reply) == 0 {
		return 0, "", errReply
	}
	data, ok := reply[0].(string)
	if !ok || len(data) < 8 {
		return 0, "", errReply
	}
	now, data = double(data), data[8:]
	rest, failed := data, 0
	for _, g := range s.groups {
		if len(rest) == 0 {
			return 0, "", errReply
		}
		status := rest[0]
		rest = rest[1:]
		if status != 0 {
			failed++
			continue
		}
		for range g.items {
			if len(rest) == 0 || len(rest) < sizeOfAnswer(rest[0]) {
				return 0, "", errReply
			}
			rest = rest[sizeOfAnswer(rest[0]):]
		}
	}
	if rest != "" || failed != len(reply)-1 {
		return 0, "", errReply
	}
	return now, data, nil
}

// Flags of an answer.
const (
	flagAllowed = 1 << iota
	flagMissing
	flagCharged
	flagInstants // two more numbers
)

// sizeOfAnswer returns the size of an answer that begins with flags.
func sizeOfAnswer(flags byte) int {
	if flags&flagInstants != 0 {
		return 1 + 4 + 4*8
	}
	return 1 + 4 + 2*8
}

func readAnswer(data string) step.Answer {
	flags := data[0]
	a := step.Answer{
		Allowed: flags&flagAllowed != 0,
		Missing: flags&flagMissing != 0,
		Charged: flags&flagCharged != 0,
		N:       int64(data[1]) | int64(data[2])<<8 | int64(data[3])<<16 | int64(data[4])<<24,
		T:       double(data[5:]),
		F:       double(data[13:]),
	}
	if flags&flagInstants != 0 {
		a.RetryAt, a.UnitAt = double(data[21:]), double(data[29:])
	}
	return a
}

func double(data string) int64 {
	var bits uint64
	for i := range 8 {
		bits |= uint64(data[i]) << (8 * i)
	}
	return int64(math.Float64frombits(bits))
}
