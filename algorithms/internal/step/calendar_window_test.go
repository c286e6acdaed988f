// When periods turn, in zones that make that hard.

package step

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/draw"
)

// dated are periods whose turns are easily got wrong.
var dated = []struct {
	zone, unit string
	at         string   // an instant
	turns      []string // those of its period, and the next
}{
	{"UTC", "day", "2024-02-28T23:59:59Z", []string{"2024-02-28T00:00:00Z", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"}},
	{"UTC", "month", "2023-12-31T12:00:00Z", []string{"2023-12-01T00:00:00Z", "2024-01-01T00:00:00Z", "2024-02-01T00:00:00Z"}},
	{"UTC", "month", "2023-02-28T12:00:00Z", []string{"2023-02-01T00:00:00Z", "2023-03-01T00:00:00Z", "2023-04-01T00:00:00Z"}},
	{"UTC", "week", "2026-11-29T12:00:00Z", []string{"2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z"}},
	{"UTC", "week-sunday", "2026-11-29T00:00:00Z", []string{"2026-11-29T00:00:00Z", "2026-12-06T00:00:00Z", "2026-12-13T00:00:00Z"}},
	{"Europe/Berlin", "week-saturday", "2025-04-01T12:00:00Z", []string{"2025-03-28T23:00:00Z", "2025-04-04T22:00:00Z", "2025-04-11T22:00:00Z"}},
	{"Pacific/Apia", "week-friday", "2011-12-31T00:00:00Z", []string{"2011-12-30T10:00:00Z", "2012-01-05T10:00:00Z", "2012-01-12T10:00:00Z"}},
	{"UTC", "quarter", "2024-02-29T12:00:00Z", []string{"2024-01-01T00:00:00Z", "2024-04-01T00:00:00Z", "2024-07-01T00:00:00Z"}},
	{"UTC", "quarter", "2025-12-31T23:59:59Z", []string{"2025-10-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-04-01T00:00:00Z"}},
	{"Europe/Berlin", "year", "2025-12-31T23:30:00Z", []string{"2025-12-31T23:00:00Z", "2026-12-31T23:00:00Z", "2027-12-31T23:00:00Z"}},
	// A day of 23 hours, and one of 25.
	{"Europe/Berlin", "day", "2025-03-30T10:00:00Z", []string{"2025-03-29T23:00:00Z", "2025-03-30T22:00:00Z", "2025-03-31T22:00:00Z"}},
	{"Europe/Berlin", "day", "2025-10-26T10:00:00Z", []string{"2025-10-25T22:00:00Z", "2025-10-26T23:00:00Z", "2025-10-27T23:00:00Z"}},
	{"Europe/Berlin", "month", "2025-03-31T22:00:00Z", []string{"2025-03-31T22:00:00Z", "2025-04-30T22:00:00Z", "2025-05-31T22:00:00Z"}},
	{"Asia/Kolkata", "day", "2025-01-01T18:29:59Z", []string{"2024-12-31T18:30:00Z", "2025-01-01T18:30:00Z", "2025-01-02T18:30:00Z"}},
	// Half an hour is skipped, and comes twice.
	{"Australia/Lord_Howe", "day", "2025-10-05T00:00:00Z", []string{"2025-10-04T13:30:00Z", "2025-10-05T13:00:00Z", "2025-10-06T13:00:00Z"}},
	// No midnight: the day begins at 01:00.
	{"America/Sao_Paulo", "day", "2018-11-04T12:00:00Z", []string{"2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z", "2018-11-06T02:00:00Z"}},
	{"Asia/Beirut", "day", "2022-03-27T12:00:00Z", []string{"2022-03-26T22:00:00Z", "2022-03-27T21:00:00Z", "2022-03-28T21:00:00Z"}},
	{"Asia/Gaza", "month", "2011-04-01T12:00:00Z", []string{"2011-03-31T22:00:00Z", "2011-04-30T21:00:00Z", "2011-05-31T21:00:00Z"}},
	// The last hour of a day comes twice, and midnight once.
	{"America/Sao_Paulo", "day", "2018-02-18T02:30:00Z", []string{"2018-02-17T02:00:00Z", "2018-02-18T03:00:00Z", "2018-02-19T03:00:00Z"}},
	// Clocks are set back at one minute past midnight: the new day has begun.
	{"America/St_Johns", "day", "2010-11-07T02:45:00Z", []string{"2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z", "2010-11-09T03:30:00Z"}},
	// There was no 30 December 2011.
	{"Pacific/Apia", "day", "2011-12-30T09:00:00Z", []string{"2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"}},
	{"Pacific/Apia", "month", "2011-12-31T00:00:00Z", []string{"2011-12-01T10:00:00Z", "2011-12-31T10:00:00Z", "2012-01-31T10:00:00Z"}},
	// Beyond the tables, at the end of a leap year.
	{"Europe/Berlin", "day", "2096-12-31T12:00:00Z", []string{"2096-12-30T23:00:00Z", "2096-12-31T23:00:00Z", "2097-01-01T23:00:00Z"}},
}

func TestCalendarsTurn(t *testing.T) {
	micro := func(text string) int64 {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return at.UnixMicro()
	}
	for _, tt := range dated {
		c := CalendarNamed(tt.unit, tt.zone)
		if c.zone == nil {
			t.Errorf("there is no zone %s", tt.zone)
			continue
		}
		got := c.turnsAt(micro(tt.at))
		for i, text := range tt.turns {
			if got[i+1] != micro(text) {
				t.Errorf("%s of %s in %s: turn %d is at %s, want %s", tt.unit, tt.at, tt.zone, i, time.UnixMicro(got[i+1]).UTC().Format(time.RFC3339), text)
			}
		}
	}
}

// A naive reading of the clock on the wall agrees wherever that does not go back
// over midnight.
func TestCalendarsTurnWithTheDate(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Beirut", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Kiritimati", "Pacific/Apia", "Africa/Casablanca"}
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		c := CalendarNamed(draw.Of(v, "day", "week", "week-sunday", "week-thursday", "month", "quarter", "year"), draw.Of(v, zones...))
		at := v.Int64(1, MaxExact-1<<46)
		date := func(at int64) (year, month, day int) {
			y, m, d := time.UnixMicro(at).In(c.zone).Date()
			switch period := CalendarUnits[c.Unit]; {
			case period.days == 7: // the day of the week's number, counted from a first day long ago
				days := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()/86_400 - int64(period.first-time.Thursday) + 70
				return 0, 0, int(days / 7)
			case c.Unit == "month":
				d = 1
			case c.Unit == "quarter":
				m, d = (m+2)/3, 1
			case c.Unit == "year":
				m, d = 1, 1
			}
			return y, int(m), d
		}
		same := func(a, b int64) bool {
			y, m, d := date(a)
			year, month, day := date(b)
			return y == year && m == month && d == day
		}
		turns := c.turnsAt(at)
		if at < turns[1] || at >= turns[2] {
			t.Fatalf("%d is not within its period, %d to %d", at, turns[1], turns[2])
		}
		for i := 1; i < len(turns); i++ {
			if turns[i-1] >= turns[i] {
				t.Fatalf("turns do not follow each other: %v", turns)
			}
			if !same(turns[i-1], turns[i]-1) || same(turns[i]-1, turns[i]) {
				t.Fatalf("the date does not turn at %d, but somewhere between %d and %d", turns[i], turns[i-1], turns[i])
			}
		}
		if !same(at, turns[1]) {
			t.Fatalf("%d is not of the date of its period, that begins at %d", at, turns[1])
		}
		if again := c.Around(at); *again != *turns || *c.Around(turns[2] - 1) != *turns || c.Around(turns[2])[1] != turns[2] {
			t.Fatalf("what is remembered, %v, is not what is computed, %v", again, turns)
		}
	})
}
