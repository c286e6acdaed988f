package algorithms

import (
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// A calendar knows when days or months turn in a time zone. There is one for
// each unit and zone, however often the zone is loaded, so that limits can be
// compared; as many zones as the system knows are few.
type calendar struct {
	unit string         // "day" or "month"
	name string         // of the zone
	zone *time.Location // nil: there is none of that name

	recent atomic.Pointer[turns] // those that were asked for last
}

// calendarUnits are the units of calendars, with the lengths that stand for
// them where a single length must: no month is longer.
var calendarUnits = map[string]time.Duration{"day": 24 * time.Hour, "month": 31 * 24 * time.Hour}

type calendarKey struct{ unit, name string }

var calendars sync.Map // of *calendar by calendarKey

// calendarOf returns the calendar of a zone; nil is UTC. A zone counts by its
// name, since that is what limits are written with: it must be known under it,
// and be the one that is.
func calendarOf(unit string, zone *time.Location) *calendar {
	if zone == nil {
		zone = time.UTC
	}
	c := calendarNamed(unit, zone.String())
	if c.zone == nil || !alike(c.zone, zone) {
		return &calendar{unit: unit, name: zone.String()}
	}
	return c
}

// calendarNamed returns the calendar of the zone of a name.
func calendarNamed(unit, name string) *calendar {
	key := calendarKey{unit, name}
	if c, ok := calendars.Load(key); ok {
		return c.(*calendar)
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" { // which is another on every machine
		return &calendar{unit: unit, name: name}
	}
	c, _ := calendars.LoadOrStore(key, &calendar{unit: unit, name: zone.String(), zone: zone})
	return c.(*calendar)
}

// alike reports whether two zones of one name are the same: of
// [time.FixedZone], a name says nothing.
func alike(a, b *time.Location) bool {
	if a == b {
		return true
	}
	for month := range 12 * 12 { // of twelve years
		at := time.Date(2020, time.January+time.Month(month), 1, 0, 0, 0, 0, time.UTC)
		_, x := at.In(a).Zone()
		_, y := at.In(b).Zone()
		if x != y {
			return false
		}
	}
	return true
}

// Turns are instants, in µs, at which periods begin: the one before a period,
// that period, and the three after it.
type turns [5]int64

// around returns the turns around an instant: its period is from the second to
// the third.
func (c *calendar) around(at int64) *turns {
	t := c.recent.Load()
	if t == nil || at < t[1] || at >= t[2] {
		t = c.turns(at)
		c.recent.Store(t)
	}
	return t
}

// turns computes the turns around an instant. A date that its zone skips makes
// no period: no two turns are the same.
func (c *calendar) turns(at int64) *turns {
	y, m, d := time.UnixMicro(at).In(c.zone).Date()
	begin := func(periods int) int64 {
		if c.unit == "month" {
			return dawn(time.Date(y, m+time.Month(periods), 1, 0, 0, 0, 0, time.UTC), c.zone)
		}
		return dawn(time.Date(y, m, d+periods, 0, 0, 0, 0, time.UTC), c.zone)
	}
	this := 0
	for begin(this+1) <= at { // a clock set back over midnight repeats a date
		this++
	}
	var t turns
	t[1] = begin(this)
	before := this - 1
	for begin(before) == t[1] {
		before--
	}
	t[0] = begin(before)
	next := this
	for i := 2; i < len(t); i++ {
		for next++; begin(next) == t[i-1]; next++ {
		}
		t[i] = begin(next)
	}
	return &t
}

// dawn returns the first instant, in µs, at which it is a date or later in a
// zone, whose clocks may skip midnight or strike it twice. The date is given as
// its midnight in UTC.
//
// It looks for changes of the clocks itself: in leap years,
// [time.Time.ZoneBounds] may return an end that has passed.
func dawn(midnight time.Time, zone *time.Location) int64 {
	const farthest = 16 * 3600 // that a zone ever was from UTC, in seconds
	offset := func(second int64) int64 {
		_, ahead := time.Unix(second, 0).In(zone).Zone()
		return int64(ahead)
	}
	for at := midnight.Unix() - farthest; ; {
		ahead, end := offset(at), at+3600
		if offset(end) != ahead {
			end = at + int64(sort.Search(3600, func(i int) bool { return offset(at+int64(i)) != ahead }))
		}
		if turn := max(at, midnight.Unix()-ahead); turn < end {
			return turn * 1_000_000
		}
		at = end
	}
}

// turned returns how many periods ended from one instant to another: 2 also for
// more, and -1 if it was the other way round.
func (c *calendar) turned(from, to int64) int64 {
	switch t := c.around(to); {
	case from >= t[2]:
		return -1
	case from >= t[1]:
		return 0
	case from >= t[0]:
		return 1
	default:
		return 2
	}
}

// turn returns the end of the k-th period, at most the third, from that of an
// instant on.
func (c *calendar) turn(at, k int64) int64 { return c.around(at)[min(k, 3)+1] }

// turned returns how many windows ended from one instant to another. Of those
// of a calendar more than two are two, which pay off any debt.
func (l *terms) turned(from, to int64) int64 {
	if l.calendar != nil {
		return l.calendar.turned(from, to)
	}
	return to/l.window - from/l.window
}

// turn returns the end of the k-th window from that of an instant on.
func (l *terms) turn(at, k int64) int64 {
	if l.calendar != nil {
		return l.calendar.turn(at, k)
	}
	return (at/l.window + k) * l.window
}
