// The header fields and the body of a decision, as package headers and the middleware write them by default.

package instruments

import (
	"strconv"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const problem = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"violated-policies":["` +
	policy + `"]`

// denied is the answer of a denial, without the fields of the limit.
func denied(d algorithms.Decision) Answer {
	body := problem
	if d.RetryAfter == algorithms.Never {
		body += `,"detail":"The request costs more than the limit allows at once. No wait helps."`
	}
	return Answer{Status: 429, Body: body + "}", Fields: [][2]string{
		{"Content-Type", "application/problem+json"}, {"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"},
	}}
}

// quotaFields returns the fields of a limit within the bounds of [ReadLimit], so no
// product overflows.
func quotaFields(limit algorithms.Limit, d algorithms.Decision) [][2]string {
	q, r := limit.Burst(), min(max(d.Remaining, 0), limit.Burst())
	item := `"` + policy + `"`
	w := "w=" + digits(ceil(fill(limit), time.Second))
	fields := [][2]string{
		{"RateLimit-Policy", item + ";q=" + digits(q) + ";" + w},
		{"RateLimit", item + ";r=" + digits(r) + effective(limit, d, r)},
		{"RateLimit-Limit", digits(q)},
		{"RateLimit-Remaining", digits(r)},
	}
	switch wait := seconds(d.RetryAfter); {
	case d.Allowed:
		fields = append(fields, [2]string{"RateLimit-Reset", digits(ceil(d.ResetAfter, time.Second))})
	case d.RetryAfter != algorithms.Never:
		fields = append(fields, [2]string{"RateLimit-Reset", wait}, [2]string{"Retry-After", wait})
	}
	return fields
}

// fill is the time in which the rate makes the burst.
func fill(limit algorithms.Limit) time.Duration {
	return time.Duration(ceil(time.Duration(limit.Burst())*limit.Window(), time.Duration(limit.Requests())))
}

// effective is the parameter t: the client can use no more than r within t seconds.
func effective(limit algorithms.Limit, d algorithms.Decision, r int64) string {
	switch {
	case !d.Allowed && d.RetryAfter == algorithms.Never:
		return ""
	case !d.Allowed:
		return ";t=" + seconds(d.RetryAfter)
	case r == 0:
		return ";t=" + seconds(d.UnitAfter)
	}
	lasts := d.ResetAfter
	if limit.Algorithm().Continuous() {
		lasts = fill(limit) - d.ResetAfter
	}
	pace := ceil(time.Duration(r*ceil(fill(limit), time.Second)), time.Duration(limit.Burst()))
	return ";t=" + digits(max(ceil(lasts, time.Second), pace))
}

// seconds are those of a wait: rounded up, and at least one.
func seconds(wait time.Duration) string { return digits(max(ceil(wait, time.Second), 1)) }

func ceil(x, y time.Duration) int64 { return int64((x + y - 1) / y) }

func digits(n int64) string { return strconv.FormatInt(n, 10) }
