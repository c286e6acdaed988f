// How a test sees a store, and the kinds of values that hold states.

package limitertest

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A Store shows a test the store below a limiter. Its methods fail the test if the store does not answer.
type Store interface {
	// Stored returns the text under a check's key, "" if there is none. Spaces join elements of a list and fields
	// (score/member) of a sorted set.
	Stored(tb testing.TB, c algorithms.Check) string

	// Plant replaces the value, without an expiry. The kind is "string", "list" (of the fields of raw), "zset" (of
	// fields score/member) or "hash" (of one field).
	Plant(tb testing.TB, c algorithms.Check, kind, raw string)

	// Kind returns the kind of the value, "none" if there is none.
	Kind(tb testing.TB, c algorithms.Check) string

	// TTL returns how long the key will live: 0 if it is gone, negative if it never expires.
	TTL(tb testing.TB, c algorithms.Check) time.Duration
}

// A storage is a kind of value that holds states.
type storage struct {
	kind string // as Store names it

	// garbage does not parse as a state, and lies do although no limiter would write them.
	garbage, lies []planted
}

// A planted value is one that no limiter wrote, and why it deserves a test.
type planted struct{ raw, why string }

// expires reports whether the value says that its key expires, although Plant gives it no expiry: a positive integer
// with an instant that no limiter repairs.
func (p planted) expires(l algorithms.Limit) bool {
	return algorithmOf(l).storage == texts && len(p.raw) == 19 && strings.HasPrefix(p.raw, strconv.FormatInt(epoch, 10))
}

var texts = &storage{
	kind:    "string",
	garbage: garbageTexts,
	lies:    lyingTexts,
}

var lists = &storage{
	kind:    "list",
	garbage: garbageLists,
	lies:    lyingLists,
}

// sets have no garbage, because any member is a unit and any score is an instant.
var sets = &storage{
	kind: "zset",
	lies: lyingSets,
}

// plant replaces the value under the key of a check by one of the kind that the limit's states have.
func (w *world) plant(c algorithms.Check, raw string) {
	w.Helper()
	w.s.Store.Plant(w, c, algorithmOf(c.Limit).storage.kind, raw)
}
