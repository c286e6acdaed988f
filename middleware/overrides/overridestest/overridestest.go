// Package overridestest, which a minor version may change, checks that an implementation of ratelimit.Overrides keeps its rules: a table of a service's
// own, e.g. over its database.
package overridestest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// A Place is where an override is set. Key is a whole key, the first part of keys, or ratelimit.Everyone.
type Place struct{ Policy, Key string }

// Run checks every rule. open returns a table that has these overrides, and has read them. If it cannot have one of them,
// e.g. because it knows no first parts, it calls tb.Skip. Run tests with -race, too.
func Run(t *testing.T, open func(tb testing.TB, all map[Place]ratelimit.Override) ratelimit.Overrides) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			table := open(t, r.set)
			for _, w := range r.want {
				got, found := table.Find(w.policy, w.key)
				if found != w.found || got.Mode != w.o.Mode || got.Limit != w.o.Limit || !got.Until.Equal(w.o.Until) {
					t.Errorf("Find(%q, %q) = %+v, %t, want %+v, %t", w.policy, w.key, got, found, w.o, w.found)
				}
			}
		})
	}
	t.Run("many goroutines call Find", func(t *testing.T) { crowd(t, open) })
}

// A want is what Find must return.
type want struct {
	policy, key string
	o           ratelimit.Override
	found       bool
}

// The overrides of the rules.
var (
	raised = ratelimit.Override{Limit: algorithms.TokenBucket(500, time.Minute)}
	lower  = ratelimit.Override{Limit: algorithms.FixedWindow(5, time.Hour), Mode: ratelimit.ModeShadow}
	banned = ratelimit.Override{Mode: ratelimit.ModeBanned}
	off    = ratelimit.Override{Mode: ratelimit.ModeOff}
	later  = ratelimit.Override{Mode: ratelimit.ModeBanned, Until: time.Date(2250, 1, 1, 0, 0, 0, 0, time.UTC)}
)

const route = "usr=42|rt=GET%20/v1"

var rules = []struct {
	name string
	set  map[Place]ratelimit.Override
	want []want
}{
	{
		"an empty table finds nothing", nil,
		[]want{{"p", "usr=42", ratelimit.Override{}, false}, {"p", ratelimit.Everyone, ratelimit.Override{}, false}},
	},
	{
		"an override holds for its policy and key", map[Place]ratelimit.Override{{"p", "usr=42"}: raised},
		[]want{
			{"p", "usr=42", raised, true},
			{"q", "usr=42", ratelimit.Override{}, false},
			{"p", "usr=4", ratelimit.Override{}, false},
			{"p", "usr=421", ratelimit.Override{}, false},
			{"p", "USR=42", ratelimit.Override{}, false},
			{"p", "", ratelimit.Override{}, false},
			{"p", ratelimit.Everyone, ratelimit.Override{}, false},
		},
	},
	{
		"limits, modes and ends are kept", map[Place]ratelimit.Override{{"p", "a=1"}: lower, {"p", "a=2"}: banned, {"p", "a=3"}: later, {"p", "a=4"}: {}},
		[]want{{"p", "a=1", lower, true}, {"p", "a=2", banned, true}, {"p", "a=3", later, true}, {"p", "a=4", ratelimit.Override{}, true}},
	},
	{
		"an override of everyone holds for all keys without one", map[Place]ratelimit.Override{{"p", ratelimit.Everyone}: off, {"p", "usr=42"}: {}},
		[]want{{"p", "usr=7", off, true}, {"p", ratelimit.Everyone, off, true}, {"p", "usr=42", ratelimit.Override{}, true}, {"q", "usr=7", ratelimit.Override{}, false}},
	},
	{
		"an override of a first part holds for all keys that begin with it", map[Place]ratelimit.Override{{"p", "usr=42"}: banned},
		[]want{{"p", route, banned, true}, {"p", "usr=42", banned, true}, {"p", "usr=4|rt=GET%20/v1", ratelimit.Override{}, false}, {"p", "ip=192.0.2.1|usr=42", ratelimit.Override{}, false}},
	},
	{
		"a whole key comes before its first part, and that before everyone",
		map[Place]ratelimit.Override{{"p", route}: raised, {"p", "usr=42"}: banned, {"p", ratelimit.Everyone}: off},
		[]want{{"p", route, raised, true}, {"p", "usr=42|rt=POST%20/v1", banned, true}, {"p", "usr=7|rt=GET%20/v1", off, true}},
	},
	{
		"an override that has ended is not in force", map[Place]ratelimit.Override{{"p", "usr=42"}: {Mode: ratelimit.ModeBanned, Until: time.Unix(1, 0)}},
		[]want{{"p", "usr=42", ratelimit.Override{}, false}},
	},
}

// crowd looks keys up in many goroutines. The race detector sees what they share.
func crowd(t *testing.T, open func(testing.TB, map[Place]ratelimit.Override) ratelimit.Overrides) {
	all := make(map[Place]ratelimit.Override)
	for i := range 100 {
		all[Place{"p", fmt.Sprintf("usr=%d", i)}] = ratelimit.Override{Limit: algorithms.TokenBucket(int64(i+1), time.Minute)}
	}
	table := open(t, all)
	var work sync.WaitGroup
	for g := range 8 {
		work.Go(func() {
			for i := range 400 {
				n := (i + 50*g) % 200 // every other hundred has no override
				o, found := table.Find("p", fmt.Sprintf("usr=%d", n))
				if found != (n < 100) || found && o.Limit != algorithms.TokenBucket(int64(n+1), time.Minute) {
					t.Errorf("Find of usr=%d returns %+v, %t", n, o, found)
				}
			}
		})
	}
	work.Wait()
}
