// Replies of the script, and of others.

package batch

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/penstock-go/penstock/internal/redistest"
)

// A reply that is not the script's is an error, and never a decision.
func TestForeignReplies(t *testing.T) {
	double := func(v float64) string {
		return string(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
	}
	now, plain, instants, fraction := double(1), double(32), double(32+flagInstants), double(32+flagFraction)
	for _, reply := range []any{
		nil, "OK", int64(1), []any{}, []any{int64(1)}, []any{""}, []any{now}, []any{now + "\x00"}, []any{now + double(-1)},
		[]any{now + plain}, []any{now + plain + now[1:]}, []any{now + plain + now + "\x00"}, []any{now + plain + now, "an error"},
		[]any{now + instants + now + now}, []any{now + instants + now + now + now + now}, []any{now + fraction + now},
		"", now, now + plain, now + plain + now[1:], now + double(-1),
	} {
		if _, err := takeOne(t.Context(), newLane(redistest.Script(nil, redistest.Reply(reply)), Options{})); err == nil {
			t.Errorf("reply %q: got an answer, want an error", reply)
		}
	}
	for _, reply := range []any{
		[]any{now + plain + now}, []any{now + instants + now + now + now}, []any{now + fraction + now + now}, now + plain + now,
	} {
		if _, err := takeOne(t.Context(), newLane(redistest.Script(nil, redistest.Reply(reply)), Options{})); err != nil {
			t.Errorf("reply %q: %v", reply, err)
		}
	}
}
