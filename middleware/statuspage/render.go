// The text of figures on the page.

package statuspage

import (
	"cmp"
	"fmt"
	"html/template"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// functions are the functions of the template.
var functions = template.FuncMap{
	"style":       func() template.CSS { return template.CSS(styles) },
	"reloadEvery": func() int { return reloadEvery },
	"stamp":       func(t time.Time) string { return t.Format(time.RFC3339) },
	"clock":       func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"seconds":     func(ms int64) int64 { return ms / 1000 },
	"span":        func(seconds int64) string { return spanText(time.Duration(seconds) * time.Second) },
	"ago":         func(then, now time.Time) string { return spanText(now.Sub(then)) + " ago" },
	"time":        shortTime,
	"count":       groupDigits,
	"rate":        perSecond,
	"percent":     percentText,
	"part":        func(n, of uint64) uint64 { return min(n*1000/max(1, of), 1000) }, // thousandths
	"override":    overrideText,
	"limit":       limitText,
	"short":       func(t time.Time) string { return t.UTC().Format("15:04:05 UTC") },
	"plural":      plural[int],
}

// spanText returns a duration in its largest unit.
func spanText(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", max(0, d)/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	default:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
}

// shortTime returns a duration with the digits that a quantile supports.
func shortTime(d time.Duration) string {
	unit, names := time.Nanosecond, []string{"ns", "µs", "ms", "s"}
	for len(names) > 1 && d >= 1000*unit {
		unit, names = 1000*unit, names[1:]
	}
	whole, tenths := d/unit, d%unit*10/unit
	if whole >= 100 || unit == time.Nanosecond {
		return fmt.Sprintf("%d %s", whole, names[0])
	}
	return fmt.Sprintf("%d.%d %s", whole, tenths, names[0])
}

func plural[N int | uint32 | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return groupDigits(n) + " " + many
}

// groupDigits returns a count with its digits in groups of three.
func groupDigits(n any) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// perSecond returns a rate with one decimal. It divides by at least one second,
// because a shorter time says little.
func perSecond(n uint64, ms int64) string {
	tenths := n * 10_000 / uint64(max(1000, ms))
	if tenths >= 1000 {
		return groupDigits(tenths/10) + "/s"
	}
	return fmt.Sprintf("%d.%d/s", tenths/10, tenths%10)
}

// percentText returns a share in per cent. It returns 0 % only for 0.
func percentText(n, of uint64) string {
	switch {
	case of == 0:
		return ""
	case n > 0 && n*100 < of:
		return "< 1 %"
	default:
		return fmt.Sprintf("%d %%", n*100/of)
	}
}

// limitText returns a limit. The text of a concurrent limit would look like a rate.
func limitText(l algorithms.Limit) string {
	if l.Algorithm().Concurrent() {
		return groupDigits(l.Requests()) + " at once"
	}
	return l.String()
}

func overrideText(o *ratelimit.Override) string {
	switch {
	case o.Limit == algorithms.Limit{}:
		return cmp.Or(string(o.Mode), "on")
	case o.Mode == "":
		return limitText(o.Limit)
	default:
		return string(o.Mode) + ", " + limitText(o.Limit)
	}
}
