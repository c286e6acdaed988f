// Durations and their units. If a line does not say the unit, the first lines of its file show it:
//
//   - Numbers without decimals are nanoseconds if their median is 20 000 or more, as slog,
//     logrus and echo write them. Smaller ones are milliseconds.
//   - Numbers with decimals are seconds if one has more than six decimals, because Go counts
//     nanoseconds, or if their median is below 1. Otherwise they are milliseconds, as
//     zerolog writes them.

package replay

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// units are the units by their names, which are also endings of the names of members.
var units = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond, "s": time.Second,
	"nanos": time.Nanosecond, "micros": time.Microsecond, "millis": time.Millisecond, "seconds": time.Second,
}

// maxDuration bounds how often a replay renews the hold of a request.
const maxDuration = 30 * 24 * time.Hour

// setDuration reads the number of a line. A number that cannot be read is none: no line is
// bad for its duration.
func (p *parser) setDuration(l *entry) {
	text := l.number
	l.number = ""
	if text == "" {
		return
	}
	var d time.Duration
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		d, err = time.ParseDuration(text)
	} else {
		if l.unit == 0 && p.sampled {
			p.numbers = append(p.numbers, text)
		}
		n *= float64(cmp.Or(l.unit, p.unit, time.Second))
		if d = time.Duration(math.Round(n)); !(n <= float64(maxDuration)) {
			return
		}
	}
	if err == nil && d >= 0 && d <= maxDuration {
		l.Duration, l.Timed = d, true
	}
}

// unitOf returns the unit of numbers that do not name theirs.
func unitOf(numbers []string) time.Duration {
	var values []float64
	whole, fine := true, false
	for _, text := range numbers {
		n, _ := strconv.ParseFloat(text, 64) // setDuration has read it
		values = append(values, n)
		_, decimals, _ := strings.Cut(text, ".")
		whole, fine = whole && n == math.Trunc(n), fine || len(decimals) > 6
	}
	slices.Sort(values)
	switch median := values[len(values)/2]; {
	case whole && median >= 20_000:
		return time.Nanosecond
	case fine || !whole && median < 1:
		return time.Second
	}
	return time.Millisecond
}

// durations are counted by their size, eight classes to each power of two.
type durations struct {
	classes [64 * 8]int64
	n       int64
	longest time.Duration
}

func (d *durations) add(took time.Duration) {
	d.n++
	d.longest = max(d.longest, took)
	d.classes[int(8*math.Log2(float64(max(1, took))))]++
}

// median returns the middle of the class that has the median: it is right to a twentieth.
func (d *durations) median() time.Duration {
	seen := int64(0)
	for class, n := range d.classes {
		if seen += n; n > 0 && 2*seen >= d.n {
			return min(d.longest, time.Duration(math.Exp2((float64(class)+0.5)/8)))
		}
	}
	return 0
}
