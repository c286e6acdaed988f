// Fields that hold one number each.

package headers

import (
	"strings"
	"time"
)

// A fieldFamily is a set of fields that describe one limit. The first of its resets
// that is valid counts.
type fieldFamily struct {
	name             string // of the limit; empty if there is only one
	limit, remaining string
	resets           []string
}

// families are groups in order of precedence: the first group that a response has
// counts. A service with several limits sends several families of the last group.
var families = [][]fieldFamily{
	{{"", separateKeys.limit, separateKeys.remaining, []string{separateKeys.reset}}},
	{{"", xRateLimitKeys.limit, xRateLimitKeys.remaining, []string{"X-Ratelimit-Reset-After", "X-Ratelimit-Retry-After", xRateLimitKeys.reset}}},
	{{"", "X-Rate-Limit-Limit", "X-Rate-Limit-Remaining", []string{"X-Rate-Limit-Reset"}}},
	{
		familyOf("requests", "X-Ratelimit-*-Requests"), familyOf("tokens", "X-Ratelimit-*-Tokens"), // OpenAI, Groq
		familyOf("requests", "Anthropic-Ratelimit-Requests-*"), familyOf("tokens", "Anthropic-Ratelimit-Tokens-*"),
		familyOf("input-tokens", "Anthropic-Ratelimit-Input-Tokens-*"), familyOf("output-tokens", "Anthropic-Ratelimit-Output-Tokens-*"),
	},
}

// familyOf returns the family whose keys have Limit, Remaining and Reset for the
// asterisk.
func familyOf(name, pattern string) fieldFamily {
	of := func(field string) string { return strings.Replace(pattern, "*", field, 1) }
	return fieldFamily{name, of("Limit"), of("Remaining"), []string{of("Reset")}}
}

func (r *reading) scalars() {
	for _, group := range families {
		for i := range group {
			if l, source := r.scalar(&group[i]); l.Remaining >= 0 || l.Within >= 0 {
				r.Limits, r.sources = append(r.Limits, l), append(r.sources, source)
			}
		}
		if len(r.Limits) > 0 {
			return
		}
	}
}

// scalar reads the limit of a family. It also returns the name of the field that
// states Within.
func (r *reading) scalar(f *fieldFamily) (l ServiceLimit, source string) {
	l = unstated()
	l.Name = f.name
	if text, ok := r.line(f.limit, ","); ok {
		// Envoy sends 10, 10;w=1;name="per-ip": the first number is the limit in force.
		first, _, _ := strings.Cut(text, ",")
		first, _, _ = strings.Cut(first, ";")
		if _, n, ok := parseDecimal(strings.Trim(first, " \t")); ok {
			l.Quota = n
		} else {
			r.malformed(f.limit)
		}
	}
	if text, ok := r.line(f.remaining, ","); ok {
		if l.Remaining, ok = leastOf(text); !ok {
			r.malformed(f.remaining)
		}
	}
	for _, key := range f.resets {
		text, ok := r.line(key, ",")
		if !ok {
			continue
		}
		if within, ok := r.reset(text); ok {
			l.Within = within
			return l, documented(key)
		}
		r.malformed(key)
	}
	return l, ""
}

// leastOf returns the least of the numbers that stacked limiters have sent, rounded
// down. It is -1 if there is none.
func leastOf(text string) (least int64, ok bool) {
	least = -1
	for part := range strings.SplitSeq(text, ",") {
		number, _, _ := strings.Cut(part, ";")
		if _, n, valid := parseDecimal(strings.Trim(number, " \t")); valid && (!ok || n < least) {
			least, ok = n, true
		}
	}
	return least, ok
}

// reset returns the latest of the resets that stacked limiters have sent. A date has
// a comma of its own.
func (r *reading) reset(text string) (latest time.Duration, ok bool) {
	if d, ok := r.resetAfter(strings.Trim(text, " \t")); ok {
		return d, true
	}
	for part := range strings.SplitSeq(text, ",") {
		number, _, _ := strings.Cut(part, ";")
		if d, valid := r.resetAfter(strings.Trim(number, " \t")); valid {
			latest, ok = max(latest, d), true
		}
	}
	return latest, ok
}
