// The calendar window: the fixed window's state and step, over days, weeks, months,
// quarters or years of a time zone.
//
// Periods differ in length: zones skip midnight or strike it twice, and some
// have skipped a whole date. So turnsAt computes the turns, the instants at
// which periods begin, five at a time around an instant. Around keeps them
// until an instant leaves the period.
//
// Example: Berlin set its clocks forward on 2026-03-29 at 02:00. In UTC, that
// day began on 28 March at 23:00 and ended on 29 March at 22:00, after 23
// hours. For an instant on that day, t[0] is the turn of 28 March, t[1] of 29
// March, and t[2], t[3] and t[4] those of the next three days. A request that
// was counted at an instant from t[1] on is in this period, an earlier one from
// t[0] on in the one before.
//
// Three further turns are enough, because a debt is at most one limit: it is
// paid off when two periods have ended.

package step

import (
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type calendarWindow struct{ fixedWindow }

// A Calendar knows when its periods turn in a time zone. Each unit and zone
// has one, however often the zone is loaded, so that limits can be compared. The
// system knows few zones, so calendars are never forgotten.
type Calendar struct {
	Unit string         // of CalendarUnits
	Zone string         // its name
	zone *time.Location // nil: there is no zone of that name

	recent atomic.Pointer[Turns] // the latest answer of Around
}

// Known reports whether the calendar's zone has its name everywhere.
func (c *Calendar) Known() bool { return c.zone != nil }

// A Period says how long the periods of a calendar are: months, or days.
type Period struct {
	Longest      time.Duration // for places that need a single length
	months, days int
	first        time.Weekday // of weeks
}

// CalendarUnits are the periods of calendars, by their units.
var CalendarUnits = func() map[string]Period {
	const day = 24 * time.Hour
	units := map[string]Period{
		"day": {Longest: day, days: 1}, "month": {Longest: 31 * day, months: 1},
		"quarter": {Longest: 92 * day, months: 3}, "year": {Longest: 366 * day, months: 12},
	}
	for first := range time.Saturday + 1 {
		units[Week(first)] = Period{Longest: 7 * day, days: 7, first: first}
	}
	return units
}()

// Week returns the unit of weeks that begin on a day: "week" for Monday, as in ISO 8601, otherwise e.g. "week-sunday".
func Week(first time.Weekday) string {
	if first == time.Monday {
		return "week"
	}
	return "week-" + strings.ToLower(first.String())
}

type calendarKey struct{ unit, name string }

var calendars sync.Map // of *Calendar by calendarKey

// CalendarOf returns the calendar of a zone; nil is UTC. Limits are written
// with the zone's name, so the zone must have this name everywhere.
func CalendarOf(unit string, zone *time.Location) *Calendar {
	if zone == nil {
		zone = time.UTC
	}
	c := CalendarNamed(unit, zone.String())
	if c.zone == nil || !alike(c.zone, zone) {
		return &Calendar{Unit: unit, Zone: zone.String()}
	}
	return c
}

// CalendarNamed returns the calendar of a zone by its name.
func CalendarNamed(unit, name string) *Calendar {
	key := calendarKey{unit, name}
	if c, ok := calendars.Load(key); ok {
		return c.(*Calendar)
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" { // Local differs by machine
		return &Calendar{Unit: unit, Zone: name}
	}
	c, _ := calendars.LoadOrStore(key, &Calendar{Unit: unit, Zone: zone.String(), zone: zone})
	return c.(*Calendar)
}

// alike reports whether two zones of one name are the same. A zone made by
// [time.FixedZone] may have any name.
func alike(a, b *time.Location) bool {
	if a == b {
		return true
	}
	const years = 12
	for month := range years * 12 {
		at := time.Date(2020, time.January+time.Month(month), 1, 0, 0, 0, 0, time.UTC)
		_, x := at.In(a).Zone()
		_, y := at.In(b).Zone()
		if x != y {
			return false
		}
	}
	return true
}

// Turns are the instants at which five periods begin: the one before a period,
// that period, and the three after it.
type Turns [5]int64

// Around returns the turns around an instant. Its period is from the second to
// the third turn.
func (c *Calendar) Around(at int64) *Turns {
	t := c.recent.Load()
	if t == nil || at < t[1] || at >= t[2] {
		t = c.turnsAt(at)
		c.recent.Store(t)
	}
	return t
}

// turnsAt computes the turns around an instant. A date that its zone skips
// makes no period, so no two turns are equal.
func (c *Calendar) turnsAt(at int64) *Turns {
	y, m, d := time.UnixMicro(at).In(c.zone).Date()
	p := CalendarUnits[c.Unit]
	if p.days == 7 {
		d -= (int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Weekday()-p.first) + 7) % 7
	}
	begin := func(periods int) int64 {
		if n := p.months; n > 0 {
			return dawn(time.Date(y, m-(m-1)%time.Month(n)+time.Month(n*periods), 1, 0, 0, 0, 0, time.UTC), c.zone)
		}
		return dawn(time.Date(y, m, d+p.days*periods, 0, 0, 0, 0, time.UTC), c.zone)
	}
	this := 0
	for begin(this+1) <= at { // a clock set back over midnight repeats a date
		this++
	}
	var t Turns
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

// dawn returns the first instant, in µs, at which a zone's clocks show a date or
// a later one. The date is given as its midnight in UTC.
//
// dawn looks for changes of the clocks itself, because [time.Time.ZoneBounds]
// may return an end that has passed (in leap years).
func dawn(midnight time.Time, zone *time.Location) int64 {
	const farthest = 16 * 3600 // seconds: no zone was ever farther from UTC
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

// turned returns how many periods ended from one instant to another; more than
// 2 count as 2. It returns -1 if from is in a later period than to.
func (c *Calendar) turned(from, to int64) int64 {
	switch t := c.Around(to); {
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

// turn returns the end of the k-th period, at most the third. The first period
// is the period of the instant.
func (c *Calendar) turn(at, k int64) int64 { return c.Around(at)[min(k, 3)+1] }
