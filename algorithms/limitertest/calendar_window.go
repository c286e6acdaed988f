// The calendar window: days, weeks, months, quarters and years in a time zone.
//
// Figures are those of the fixed window, with periods from midnight to midnight by the clocks of the zone. A day
// has 23 to 25 hours where clocks are set. The model asks package time for the date, and computes no midnight
// itself.

package limitertest

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

var _ = register(algorithm{
	of:      calendar,
	most:    1_000_000_000_000,
	family:  window,
	tag:     "cw",
	storage: texts,
	model:   newDates,
	vectors: calendarTraces,
	days:    true,
})

// calendar makes a limit of the calendar from the arguments of all other constructors. The window selects zone and
// unit: whole milliseconds up to a day mean days in UTC.
func calendar(requests int64, window time.Duration) algorithms.Limit {
	zone := zones[int(max(0, window.Microseconds())%1_000)%len(zones)]
	if window <= 24*time.Hour {
		return algorithms.PerDay(requests, zone)
	}
	switch days := window / (24 * time.Hour); {
	case days <= 7:
		return algorithms.PerWeek(requests, zone, time.Weekday(window/time.Hour%7))
	case days <= 31:
		return algorithms.PerMonth(requests, zone)
	case days <= 92:
		return algorithms.PerQuarter(requests, zone)
	}
	return algorithms.PerYear(requests, zone)
}

// zones set their clocks at night, at midnight, by half an hour, or never, and are up to fourteen hours ahead.
var zones = []*time.Location{
	location("UTC"), location("Europe/Berlin"), location("America/New_York"), location("America/Sao_Paulo"),
	location("Asia/Beirut"), location("Asia/Kolkata"), location("Australia/Lord_Howe"),
	location("Pacific/Kiritimati"), location("Pacific/Apia"),
}

// location panics if there is no such zone. The zones of this list are in every database.
func location(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return zone
}

// newDates finds zone and unit by trying all of them, because a Limit does not reveal them.
func newDates(l algorithms.Limit) model {
	for _, zone := range zones {
		day := func(at int64) int64 {
			year, month, day := time.UnixMicro(at).In(zone).Date()
			return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / 86_400
		}
		month := func(at int64) int64 {
			year, month, _ := time.UnixMicro(at).In(zone).Date()
			return int64(year)*12 + int64(month) - 1
		}
		switch l {
		case algorithms.PerDay(l.Requests(), zone):
			return &turning{limit: l.Requests(), period: day}
		case algorithms.PerMonth(l.Requests(), zone):
			return &turning{limit: l.Requests(), period: month}
		case algorithms.PerQuarter(l.Requests(), zone):
			return &turning{limit: l.Requests(), period: func(at int64) int64 { return month(at) / 3 }}
		case algorithms.PerYear(l.Requests(), zone):
			return &turning{limit: l.Requests(), period: func(at int64) int64 { return month(at) / 12 }}
		}
		for first := range time.Saturday + 1 {
			if l == algorithms.PerWeek(l.Requests(), zone, first) { // the first day of the epoch was a Thursday
				return &turning{limit: l.Requests(), period: func(at int64) int64 { return (day(at) + int64(time.Thursday-first) + 7) / 7 }}
			}
		}
	}
	panic("a calendar that the suite does not use: " + l.String())
}

const (
	// Traces begin on 2025-11-21 at 13:50:30 in Berlin.
	berlinMidnight = 10*hour + 9*minute + 30*second
	berlinSpring   = 127*day + berlinMidnight // until 2026-03-29, a day of 23 hours
)

var berlin5 = algorithms.PerDay(5, location("Europe/Berlin"))

var calendarTraces = []trace{
	{"a day turns at midnight of its zone, and debt goes into the next day", berlin5, []step{
		take(0, 4).yes(1, berlinMidnight).stored("1763729430000000004"),
		take(0, 2).no(1, berlinMidnight, berlinMidnight).same(),
		take(berlinMidnight-1, 2).no(1, 1, 1).same(),
		take(berlinMidnight, 5).yes(0, day).stored("1763766000000000005"),
		giveBack(berlinMidnight, 1, 0).yes(0, day).same(),
		force(berlinMidnight, 3).yes(0, 2*day).stored("1763766000000000008"),
		take(berlinMidnight, 0).no(0, day, 2*day).same(),
		take(berlinMidnight+day, 3).no(2, day, day).same(), // 8 - 5 are in use
		take(berlinMidnight+day, 2).yes(0, day),
	}},
	{"a day on which clocks are set forward has 23 hours", berlin5, []step{
		take(berlinSpring-1, 5).yes(0, 1),
		take(berlinSpring, 5).yes(0, 23*hour),
		take(berlinSpring+23*hour-1, 1).no(0, 1, 1),
		take(berlinSpring+23*hour, 1).yes(4, day),
	}},
	{"a step back of the clock opens no second quota", berlin5, []step{
		take(berlinMidnight, 5).yes(0, day),
		take(0, 1).no(0, berlinMidnight, berlinMidnight).stored("1763729430000000005"),
		take(berlinMidnight, 5).yes(0, day),
	}},
}
