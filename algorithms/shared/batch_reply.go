// The reply of the Lua script: lua/prelude.lua has the layout.

package shared

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// errLate is the error of a call that came to Redis after its deadline each time.
var errLate = errors.New("the call came to Redis after its deadline each time, and did nothing: does the server's clock step?")

var errReply = errors.New("the reply is not the script's: is something between this process and Redis?")

// answered reads the server's instant in a reply, and whether the script was
// late: then the instant is the whole reply. It reports whether this is a reply
// of the script.
func (s *script) answered() (at int64, late, ok bool) {
	reply, err := s.cmd.Slice()
	if err != nil || len(reply) == 0 {
		return 0, false, false
	}
	data, ok := reply[0].(string)
	if !ok || len(data) < 8 {
		return 0, false, false
	}
	return double(data), len(data) == 8 && len(s.groups) > 0, true
}

// read gives every group its part of the reply. If the reply cannot be read, it
// returns an error, and the answers of the groups mean nothing. It skips groups
// whose callers have left, because the callers may use their items again.
func (s *script) read(reply []any) error {
	now, late, ok := s.answered()
	switch {
	case !ok:
		return errReply
	case late:
		return errLate
	}
	data, failures := reply[0].(string)[8:], reply[1:]
	if s.now.µs > 0 {
		if len(data) < 8 {
			return errReply
		}
		now, data = double(data), data[8:]
	}
	for _, g := range s.groups {
		if data == "" {
			return errReply
		}
		failed := data[0] != 0
		data = data[1:]
		if failed {
			if len(failures) == 0 {
				return errReply
			}
			g.err = fmt.Errorf("%w: %w", errStoredKey, scriptError(fmt.Sprint(failures[0])))
			failures = failures[1:]
			continue
		}
		for _, it := range g.items {
			if data == "" || len(data) < sizeOfAnswer(data[0]) {
				return errReply
			}
			if !g.left {
				it.now, it.Answer = now, readAnswer(data)
			}
			data = data[sizeOfAnswer(data[0]):]
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
	flagInstants // two more numbers
	flagPast     // two other numbers: the era and the shift
)

// sizeOfAnswer returns the size of an answer that begins with flags.
func sizeOfAnswer(flags byte) int {
	if flags&(flagInstants|flagPast) != 0 {
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
		N:       int64(binary.LittleEndian.Uint32([]byte(data[1:5]))),
		T:       double(data[5:]),
		F:       double(data[13:]),
	}
	if flags&flagInstants != 0 {
		a.RetryAt, a.UnitAt = double(data[21:]), double(data[29:])
	} else if flags&flagPast != 0 {
		a.Era, a.Shift = double(data[21:]), double(data[29:])
	}
	return a
}

func double(data string) int64 {
	return int64(math.Float64frombits(binary.LittleEndian.Uint64([]byte(data[:8]))))
}
