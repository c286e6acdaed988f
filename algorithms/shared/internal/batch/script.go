// The command that runs a script: EVALSHA with the digest, and EVAL with the source
// for a Redis that does not know the script (NOSCRIPT).

package batch

import (
	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/lua"
)

// again makes the commands of the scripts that are to be sent once more. Redis
// has executed no part of them.
func (b *batch) again() {
	clear(b.trips)
	b.trips = b.trips[:0]
	if b.expired() {
		return
	}
	for i := range b.scripts {
		s := &b.scripts[i]
		err, name, text := s.cmd.Err(), "evalsha", scriptDigest
		if err == nil || s.refused || !trouble.Of(err).Retry {
			continue
		}
		s.refused = true
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			b.lane.transport.counts.loads.Add(1)
			name, text = "eval", scriptSource
		}
		b.command(s, name, text)
	}
}

var scriptDigest, scriptSource = []byte(lua.Digest), []byte(lua.Source())

// command makes the command that runs a script of the batch, for the next trip: EVALSHA with the digest, or EVAL with
// the source.
func (b *batch) command(s *script, name string, text []byte) {
	b.lane.transport.counts.scripts.Add(1)
	s.name = scriptName{batch: b, text: text}
	s.now = b.now
	s.args = append(s.args[:0], name, &s.name, len(s.keys))
	for i := range s.keys {
		s.args = append(s.args, &s.keys[i])
	}
	s.args = append(s.args, s.packed, s.takes)
	if s.now > 0 || len(s.checks) > 0 || s.general {
		s.args = append(s.args, s.now)
	}
	if len(s.checks) > 0 {
		s.args = append(s.args, s.checks)
	}
	s.cmd = redis.NewCmd(b.ctx, s.args...)
	s.cmd.SetFirstKeyPos(3)
	b.trips = append(b.trips, Once{s.cmd})
}

// A scriptName is the digest or the source of a script, as an argument of a
// command. A client that reads it may send it.
type scriptName struct {
	batch *batch
	text  []byte
	sent  int64 // µs, monotonic: when it was written; 0: unknown
}

// MarshalBinary is called by go-redis when it writes the command. For a batch
// that has ended unsent it returns no name. Redis then knows no such script, and
// other commands on the connection are not harmed.
func (n *scriptName) MarshalBinary() ([]byte, error) {
	if n.batch.send() {
		n.sent = monotonic()
		return n.text, nil
	}
	return nil, nil
}

// String is for hooks that trace commands as text. They send nothing. A client of
// another library may.
func (n *scriptName) String() string {
	if n.batch.opaque {
		text, _ := n.MarshalBinary()
		return string(text)
	}
	return string(n.text)
}

// Once keeps go-redis from sending a command again after a failure in which
// Redis may have executed it.
type Once struct{ *redis.Cmd }

// NoRetry says so to go-redis.
func (Once) NoRetry() bool { return true }
