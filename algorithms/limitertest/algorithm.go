// The suite's knowledge of an algorithm, and how rules select algorithms. Every algorithm has one file here, with the
// name of its file in package algorithms. That file registers the algorithm, so a new one needs nothing else. Rules
// select by name or by property, never by place, because a new algorithm must not shift what a rule covers.

package limitertest

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	steps "github.com/penstock-go/penstock/algorithms/internal/step"
)

// An algorithm is the suite's knowledge of one algorithm. The zero value of each property is the usual case.
type algorithm struct {
	// of constructs a limit. It may choose another window, see days.
	of func(requests int64, window time.Duration) algorithms.Limit

	// most is the largest number of requests that a limit may have.
	most int64

	// family says how units come back.
	family family

	// tag ends the stored key, as documented.
	tag string

	// storage is the kind of Redis value that holds the state.
	storage *storage

	// model is the definition, for limits of this algorithm.
	model func(algorithms.Limit) model

	// vectors are worked examples.
	vectors []trace

	// days says that windows are days and months: the window given to of only selects the calendar.
	days bool

	// delays says that an admitted take may have a Delay.
	delays bool

	// fades says that the previous window still counts in part, so the first unit comes back before the last one even
	// if only one was taken.
	fades bool

	// kept returns how many of the units that many callers returned may stay charged; nil means none.
	kept func(algorithms.Limit) int64
}

// A family says how units come back.
type family string

const (
	bucket family = "bucket" // bit by bit
	window family = "window" // all at once, when the window turns
	log    family = "log"    // each take by itself, one window after it
	held   family = "held"   // with a Return, or one window after the take
)

// registry holds every algorithm by its name, as in "token-bucket".
var registry = map[string]algorithm{}

// register adds an algorithm. Files call it while the package is initialized, in any order.
func register(a algorithm) algorithm {
	if _, found := registry[a.name()]; found {
		panic("registered twice: " + a.name())
	}
	registry[a.name()] = a
	return a
}

func (a algorithm) name() string { return a.of(1, time.Second).Algorithm().String() }

// ten returns a limit of ten per minute, or of ten per day if the windows are days.
func (a algorithm) ten() algorithms.Limit { return a.of(10, time.Minute) }

// every returns all algorithms, ordered by name so that seeds repeat random traces.
func every() []algorithm { return which(func(algorithm) bool { return true }) }

// buckets returns the algorithms with a burst.
func buckets() []algorithm { return which(func(a algorithm) bool { return a.family == bucket }) }

// windowed returns all algorithms except buckets: each counts a unit in full or not at all.
func windowed() []algorithm { return which(func(a algorithm) bool { return a.family != bucket }) }

// timed returns the algorithms whose windows may be of any length.
func timed() []algorithm { return which(func(a algorithm) bool { return !a.days }) }

func which(has func(algorithm) bool) []algorithm {
	var selected []algorithm
	for _, name := range slices.Sorted(maps.Keys(registry)) {
		if has(registry[name]) {
			selected = append(selected, registry[name])
		}
	}
	return selected
}

// the returns the algorithm of a name.
func the(name string) algorithm {
	a, found := registry[name]
	if !found {
		panic("no file of package limitertest registers the algorithm " + name)
	}
	return a
}

// algorithmOf returns the algorithm of a limit.
func algorithmOf(l algorithms.Limit) algorithm { return the(l.Algorithm().String()) }

// Tag returns the end of an algorithm's stored keys, e.g. "tb".
func Tag(a algorithms.Algorithm) string { return the(a.String()).tag }

// ten returns ten per minute of every algorithm.
func ten() []algorithms.Limit { return limits(every(), 10, time.Minute) }

// limits returns one limit of each algorithm.
func limits(of []algorithm, requests int64, window time.Duration) []algorithms.Limit {
	var all []algorithms.Limit
	for _, a := range of {
		all = append(all, a.of(requests, window))
	}
	return all
}

// runAlgorithms checks that no algorithm escapes the suite, and that package algorithms agrees on their properties.
func runAlgorithms(t *testing.T, _ Subject) {
	tags := make(map[string]string)
	for _, row := range steps.Rows {
		if row == steps.Nobody {
			continue
		}
		limit := algorithms.LimitOf(steps.NewLimit(row, 1, 1))
		a, name := limit.Algorithm(), row.Name
		known, found := registry[name]
		if !found {
			t.Errorf("no file of package limitertest registers the algorithm %s", name)
			continue
		}
		if a.Continuous() != (known.family == bucket) || a.Concurrent() != (known.family == held) ||
			a.Calendar() != known.days {
			t.Errorf("%s: got Continuous %t, Concurrent %t, Calendar %t; want those of family %s, days %t",
				name, a.Continuous(), a.Concurrent(), a.Calendar(), known.family, known.days)
		}
		if a.Aligned() != (known.family == window && !known.fades) {
			t.Errorf("%s: got Aligned %t, want true only for windows that turn all at once", name, a.Aligned())
		}
		if other := tags[known.tag]; known.tag == "" || other != "" {
			t.Errorf("%s: got the tag %q, want one that no other algorithm has (%q)", name, known.tag, other)
		}
		tags[known.tag] = name
	}
}
