// Lines in the order of their times.
//
// Servers write a line when a request ends, and replays need the order in which requests
// were decided. An order holds the lines of the last minute in a heap, the earliest first.
// If they take too much memory, the earliest go on before the minute is over.

package replay

const (
	micros = 1_000_000 // in a second
	within = 60        // seconds that a line may be out of order

	maxHeld = 32 << 20 // bytes that the orders of all files hold together
)

// A queue is a heap, the earliest first. What has one instant keeps its order.
type queue struct {
	places []place
	added  int64
}

// A place is where a line or a settlement waits.
type place struct {
	at, number int64
	what       any // a pointer, which takes no allocation
}

func (p *place) before(other *place) bool {
	return p.at < other.at || p.at == other.at && p.number < other.number
}

// due reports whether the first is not later than an instant.
func (q *queue) due(instant int64) bool { return len(q.places) > 0 && q.places[0].at <= instant }

func (q *queue) push(at int64, what any) {
	q.added++
	q.places = append(q.places, place{at, q.added, what})
	for i := len(q.places) - 1; i > 0; {
		parent := (i - 1) / 2
		if q.places[parent].before(&q.places[i]) {
			break
		}
		q.places[parent], q.places[i] = q.places[i], q.places[parent]
		i = parent
	}
}

// pop removes the first. There must be one.
func (q *queue) pop() place {
	last := len(q.places) - 1
	first := q.places[0]
	q.places[0], q.places[last] = q.places[last], place{}
	q.places = q.places[:last]
	for i, next := 0, 0; ; i = next {
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if q.places[child].before(&q.places[next]) {
				next = child
			}
		}
		if next == i {
			return first
		}
		q.places[i], q.places[next] = q.places[next], q.places[i]
	}
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
	o.lines.push(l.Time, l)
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
	l := o.lines.pop().what.(*entry)
	o.held -= l.size()
	o.floor = max(o.floor, l.Time)
	return l
}
