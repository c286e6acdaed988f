// Lines in the order of their times.
//
// Servers write a line when a request ends, and replays need the order in which requests
// were decided. An order holds the lines of the last minute in a heap, the earliest first.
// If they take too much memory, the earliest go on before the minute is over.

package replay

import "container/heap"

const (
	micros = 1_000_000 // in a second
	within = 60        // seconds that a line may be out of order

	maxHeld = 32 << 20 // bytes that the orders of all files hold together
)

// An order is a heap of places, and the lines at these places.
type order struct {
	most   int // bytes to hold; one line is always held
	places queue[place]
	lines  []entry
	free   []uint32 // in lines
	held   int      // bytes
	newest int64    // second of a line so far
	floor  int64    // µs: no line that is emitted from now on is earlier
	added  int64    // lines so far
	late   int      // lines that came after a later line was emitted
}

// A place is where a line is held.
type place struct {
	turn
	line uint32
}

// A turn orders by instants, and by numbers what has one instant.
type turn struct{ at, number int64 }

func (t turn) when() turn { return t }

// A queue is a heap, the earliest first.
type queue[T interface{ when() turn }] []T

func (q queue[T]) Len() int { return len(q) }
func (q queue[T]) Less(i, j int) bool {
	a, b := q[i].when(), q[j].when()
	return a.at < b.at || a.at == b.at && a.number < b.number
}
func (q queue[T]) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue[T]) Push(x any)   { *q = append(*q, *x.(*T)) }
func (q *queue[T]) Pop() any {
	last := len(*q) - 1
	clear((*q)[last:]) // of its texts
	*q = (*q)[:last]
	return nil // callers read the first before
}

// size returns the bytes that a held line takes, with its place.
func (l *entry) size() int {
	const fixed, settlement = 400, 64 // with the URL
	return fixed + len(l.Address) + len(l.User) + len(l.Method) + len(l.Path) + settlement*len(l.Settled)
}

// add takes a line, and emits the lines that are now due. A line that comes too late
// gets the earliest time that is left.
func (o *order) add(l *entry, emit func(*entry)) {
	if l.Time < o.floor {
		o.late++
		l.Time = o.floor
		emit(l) // at once: after a clock went back by hours, all of the rest is late
		return
	}
	o.hold(l)
	if second := l.Time / micros; second > o.newest {
		o.newest = second
		o.floor = max(o.floor, (second-within)*micros)
	}
	for len(o.places) > 0 && o.places[0].at < o.floor || o.held > o.most && len(o.places) > 1 {
		o.emitFirst(emit)
	}
}

// hold puts a line into the heap.
func (o *order) hold(l *entry) {
	var at uint32
	if n := len(o.free); n > 0 {
		at, o.free = o.free[n-1], o.free[:n-1]
		o.lines[at] = *l
	} else {
		at, o.lines = uint32(len(o.lines)), append(o.lines, *l)
	}
	o.held += l.size()
	o.added++
	heap.Push(&o.places, &place{turn{l.Time, o.added}, at})
}

// emitFirst emits the earliest line. The line is valid until emit returns.
func (o *order) emitFirst(emit func(*entry)) {
	first := o.places[0]
	heap.Pop(&o.places)
	l := &o.lines[first.line]
	o.held -= l.size()
	o.floor = max(o.floor, l.Time)
	emit(l)
	*l = entry{}
	o.free = append(o.free, first.line)
}
