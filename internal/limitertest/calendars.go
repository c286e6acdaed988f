package limitertest

import (
	"math/big"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// calendar makes a limit of the calendar of what the others are made of: the window, which such a limit does not have,
// chooses its zone and unit.
func calendar(requests int64, window time.Duration) algorithms.Limit {
	i := int(max(0, window.Microseconds()) % 1_000)
	zone := zones[i%len(zones)]
	if i%2 == 0 {
		return algorithms.PerDay(requests, zone)
	}
	return algorithms.PerMonth(requests, zone)
}

// everyConstructor also makes limits whose windows cannot be chosen.
var everyConstructor = append(constructors[:len(constructors):len(constructors)], calendar)

// zones set their clocks at night, at midnight, by half an hour, never, and live up to fourteen hours ahead.
var zones = func() (zones []*time.Location) {
	for _, name := range []string{
		"UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Asia/Beirut",
		"Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Kiritimati", "Pacific/Apia",
	} {
		zones = append(zones, must(time.LoadLocation(name)))
	}
	return zones
}()

func must(zone *time.Location, err error) *time.Location {
	if err != nil {
		panic(err)
	}
	return zone
}

// dates adds admissions up date by date, as a calendar on the wall shows them.
type dates struct {
	limit algorithms.Limit
	zone  *time.Location
	month bool
	all   []admission
}

// newDates finds zone and unit by trying them all, since a Limit does not tell.
func newDates(l algorithms.Limit) model {
	for _, zone := range zones {
		switch l {
		case algorithms.PerDay(l.Requests(), zone):
			return &dates{limit: l, zone: zone}
		case algorithms.PerMonth(l.Requests(), zone):
			return &dates{limit: l, zone: zone, month: true}
		}
	}
	panic("no calendar of the tests: " + l.String())
}

// period numbers the dates that there are.
func (d *dates) period(at int64) int64 {
	year, month, day := time.UnixMicro(at).In(d.zone).Date()
	if d.month {
		return int64(year)*12 + int64(month)
	}
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / 86_400
}

func (d *dates) used(now int64) *big.Rat { return new(big.Rat).SetInt64(d.owed(now)) }

// owed returns what the date of now has used, with what earlier ones left: each pays one limit off.
func (d *dates) owed(now int64) (sum int64) {
	var period int64
	pay := func(until int64) {
		for ; period < until && sum > 0; period++ {
			sum = max(0, sum-d.limit.Requests())
		}
		period = until
	}
	for _, a := range d.all {
		pay(d.period(a.at))
		sum += a.units
	}
	pay(d.period(now))
	return sum
}

func (d *dates) charge(now, units int64) { d.all = append(d.all, admission{now, units}) }

func (d *dates) room(now int64) int64 {
	return max(0, limitOfDebt(d.limit.Requests())-d.owed(now))
}
