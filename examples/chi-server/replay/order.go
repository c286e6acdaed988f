// Lines in the order of their times.
//
// Servers write a line when a request ends, and replays need the order in which requests
// were decided. An order holds the lines of the last minute, one bucket for each second,
// and sorts a bucket when it is too old for further lines.

package replay

import (
	"cmp"
	"maps"
	"slices"
)

const (
	micros = 1_000_000 // in a second
	within = 60        // seconds that a line may be out of order
)

type order struct {
	buckets map[int64][]Line // by their second
	newest  int64            // second of a line so far
	next    int64            // the first second that was not emitted
	late    int              // lines that came later than within
	free    [][]Line
}

// add takes a line, and emits the lines that are now due. A line that comes too late
// gets the earliest time that is left.
func (o *order) add(l Line, emit func([]Line)) {
	if o.buckets == nil {
		o.buckets = make(map[int64][]Line)
	}
	second := l.Time / micros
	if second < o.next {
		o.late++
		l.Time = o.next * micros
		emit([]Line{l}) // at once: after a clock went back by hours, all of the rest is late
		return
	}
	bucket := o.buckets[second]
	if n := len(o.free); bucket == nil && n > 0 {
		bucket, o.free = o.free[n-1], o.free[:n-1]
	}
	o.buckets[second] = append(bucket, l)
	if second > o.newest {
		o.newest = second
		o.emitBefore(second-within, emit)
	}
}

// flush emits all lines that are left.
func (o *order) flush(emit func([]Line)) { o.emitBefore(o.newest+1, emit) }

// emitBefore emits all lines before a second. The lines are valid until emit returns.
func (o *order) emitBefore(second int64, emit func([]Line)) {
	due := slices.DeleteFunc(slices.Collect(maps.Keys(o.buckets)), func(s int64) bool { return s >= second })
	slices.Sort(due)
	for _, s := range due {
		lines := o.buckets[s]
		slices.SortStableFunc(lines, func(a, b Line) int { return cmp.Compare(a.Time, b.Time) })
		emit(lines)
		delete(o.buckets, s)
		clear(lines)
		o.free = append(o.free, lines[:0])
	}
	o.next = max(o.next, second)
}
