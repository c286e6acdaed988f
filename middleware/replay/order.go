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

// A queue is a heap, the earliest first. What has one instant keeps its order.
type queue struct {
	places []*place
	added  int64
}

// A place is where a line or a settlement waits.
type place struct {
	at, number int64
	what       any
}

func (q *queue) add(at int64, what any) {
	q.added++
	heap.Push(q, &place{at, q.added, what})
}

// due reports whether the first is not later than an instant.
func (q *queue) due(instant int64) bool { return len(q.places) > 0 && q.places[0].at <= instant }

func (q *queue) Len() int      { return len(q.places) }
func (q *queue) Swap(i, j int) { q.places[i], q.places[j] = q.places[j], q.places[i] }
func (q *queue) Push(p any)    { q.places = append(q.places, p.(*place)) }

func (q *queue) Less(i, j int) bool {
	a, b := q.places[i], q.places[j]
	return a.at < b.at || a.at == b.at && a.number < b.number
}

func (q *queue) Pop() any {
	last := len(q.places) - 1
	p := q.places[last]
	q.places[last] = nil
	q.places = q.places[:last]
	return p
}

// An order holds lines until no earlier one may come.
type order struct {
	most  int // bytes to hold; one line is always held
	lines queue
	held  int   // bytes
	floor int64 // µs: no line that is taken from now on is earlier
	late  int   // lines that came after a later line was taken
}

// size returns the bytes that a held line takes, with its place.
func (l *entry) size() int {
	const fixed, settlement = 400, 64 // with the URL
	return fixed + len(l.Address) + len(l.User) + len(l.Method) + len(l.Path) + settlement*len(l.Settled)
}

// add holds a line. One that comes too late gets the earliest time that is left.
func (o *order) add(l *entry) {
	if l.Time < o.floor {
		o.late++
		l.Time = o.floor
	}
	o.lines.add(l.Time, l)
	o.held += l.size()
	o.floor = max(o.floor, (l.Time/micros-within)*micros)
}

// due reports whether a line can be taken before more come.
func (o *order) due() bool {
	return o.lines.due(o.floor) || o.held > o.most && len(o.lines.places) > 1
}

// take returns the earliest line, nil if none is held.
func (o *order) take() *entry {
	if len(o.lines.places) == 0 {
		return nil
	}
	l := heap.Pop(&o.lines).(*place).what.(*entry)
	o.held -= l.size()
	o.floor = max(o.floor, l.Time)
	return l
}
