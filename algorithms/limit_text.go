// Limits as text: what people write in flags and files, and read in logs.

package algorithms

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// units of windows in limits, the largest first.
var windowUnits = [...]struct {
	name string
	size time.Duration
}{
	{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute},
	{"s", time.Second}, {"ms", time.Millisecond}, {"us", time.Microsecond},
}

// String returns the limit as ParseLimit reads it, or "" for the zero Limit.
func (l Limit) String() string {
	n := &l.step
	if n.Row == nil || n.Row == step.Nobody {
		return l.Algorithm().String()
	}
	if n.Calendar != nil {
		return l.calendarText()
	}
	text := fmt.Sprintf("%s %d/%s", n.Row.Name, n.Requests, windowText(l.Window()))
	if n.Burst != n.Requests {
		text += fmt.Sprintf(" burst %d", n.Burst)
	}
	return text
}

func (l Limit) calendarText() string {
	c := l.step.Calendar
	text := fmt.Sprintf("%s %d/%s", l.step.Row.Name, l.step.Requests, c.Unit)
	if c.Zone != "UTC" {
		text += " " + c.Zone
	}
	return text
}

func windowText(window time.Duration) string {
	for _, unit := range windowUnits {
		if window > 0 && window%unit.size == 0 {
			return strconv.FormatInt(int64(window/unit.size), 10) + unit.name
		}
	}
	return window.String() // no valid window; errors show it
}

// ParseLimit reads a limit, [algorithm ]requests/window[ burst n], such as
//
//	60/1m burst 10
//	calendar-window 10000/month Europe/Berlin
//
// A window is an integer in us, ms, s, m, h or d, or a calendar day, week, month, quarter or year, of UTC or of the
// zone that follows. A week begins on Monday, a week-sunday on Sunday. Without an algorithm the limit is a token
// bucket. Errors wrap [ErrInvalid].
func ParseLimit(text string) (Limit, error) {
	l, err := parseLimit(strings.Fields(text))
	if err != nil {
		return Limit{}, fmt.Errorf("algorithms: %w: limit %q: %w", ErrInvalid, text, err)
	}
	if err := l.Validate(); err != nil {
		return Limit{}, fmt.Errorf("algorithms: %w", err)
	}
	return l, nil
}

var (
	errLimitForm    = errors.New("want [algorithm ]requests/window[ burst n], e.g. 60/1m burst 10")
	errCalendarForm = errors.New("want calendar-window requests/day, /week, /week-sunday, /month, /quarter or /year[ zone], e.g. calendar-window 10000/month Europe/Berlin")
)

func parseLimit(words []string) (Limit, error) {
	row := step.TokenBucket
	if len(words) > 0 && !strings.Contains(words[0], "/") {
		if '0' <= words[0][0] && words[0][0] <= '9' { // a number, and no window
			return Limit{}, errLimitForm
		}
		var err error
		if row, err = parseAlgorithm(words[0]); err != nil {
			return Limit{}, err
		}
		words = words[1:]
	}
	if row == step.Nobody && len(words) == 0 {
		return Nobody(), nil
	}
	if row.Calendar {
		return parseCalendar(words)
	}
	if row == step.Nobody || len(words) != 1 && (len(words) != 3 || words[1] != "burst") {
		return Limit{}, errLimitForm
	}
	count, window, _ := strings.Cut(words[0], "/")
	requests, err := parseCount(count)
	if err != nil {
		return Limit{}, err
	}
	per, err := parseWindow(window)
	if err != nil {
		return Limit{}, err
	}
	l := newLimit(row, requests, per)
	if len(words) == 1 {
		return l, nil
	}
	burst, err := parseCount(words[2])
	if err != nil {
		return Limit{}, err
	}
	return l.WithBurst(burst), nil
}

func parseCalendar(words []string) (Limit, error) {
	if len(words) == 1 {
		words = []string{words[0], "UTC"}
	}
	if len(words) != 2 {
		return Limit{}, errCalendarForm
	}
	count, unit, _ := strings.Cut(words[0], "/")
	if _, ok := step.CalendarUnits[unit]; !ok {
		return Limit{}, errCalendarForm
	}
	requests, err := parseCount(count)
	if err != nil {
		return Limit{}, err
	}
	return calendarLimit(requests, step.CalendarNamed(unit, words[1])), nil
}

func parseAlgorithm(name string) (*step.Row, error) {
	for _, row := range step.Rows {
		if row.Name == name {
			return row, nil
		}
	}
	names := make([]string, 0, len(step.Rows))
	for _, row := range step.Rows {
		names = append(names, row.Name)
	}
	return nil, fmt.Errorf("there is no algorithm %q: want %s", name, strings.Join(names, ", "))
}

// parseCount reads digits only: no sign, no underscore.
func parseCount(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%q is not a count: want digits only", text)
	}
	return int64(n), nil
}

func parseWindow(text string) (time.Duration, error) {
	if _, ok := step.CalendarUnits[text]; ok {
		return 0, fmt.Errorf("the window %q is a calendar's: write calendar-window requests/%s", text, text)
	}
	digits := strings.TrimRight(text, "usmhd")
	for _, unit := range windowUnits {
		if text[len(digits):] != unit.name {
			continue
		}
		n, err := parseCount(digits)
		switch {
		case digits == "":
			return 0, fmt.Errorf("the window %q has no number: write 1%s", text, text)
		case strings.Trim(digits, "0123456789") != "":
			return 0, errWindow(text)
		case err != nil || n < 1 || n > step.MaxWindow*int64(time.Microsecond)/int64(unit.size):
			return 0, fmt.Errorf("the window %q is not between 1us and 407d", text)
		}
		return time.Duration(n) * unit.size, nil
	}
	return 0, errWindow(text)
}

// errWindow returns the error of a window without an integer or without a unit.
func errWindow(text string) error {
	if d, err := time.ParseDuration(text); err == nil && d > 0 && d%time.Microsecond == 0 {
		return fmt.Errorf("the window %q is not an integer with a unit: write %s", text, windowText(d))
	}
	return fmt.Errorf("the window %q is not an integer with a unit of us, ms, s, m, h or d", text)
}

// MarshalText implements encoding.TextMarshaler. An invalid limit is an error.
func (l Limit) MarshalText() ([]byte, error) {
	if err := l.Validate(); err != nil {
		return nil, fmt.Errorf("algorithms: %w", err)
	}
	return []byte(l.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler] by [ParseLimit].
func (l *Limit) UnmarshalText(text []byte) error {
	parsed, err := ParseLimit(string(text))
	if err != nil {
		return err
	}
	*l = parsed
	return nil
}
