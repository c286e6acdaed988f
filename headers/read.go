package headers

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Fields are the rate limit fields of one response; the zero value has none.
type Fields struct {
	// Wait is how long the client has to wait from the response on; [Never] beyond 292 years.
	Wait time.Duration

	// From names the field of Wait, e.g. "Retry-After"; empty if there is none.
	From string

	// Limits are the items of RateLimit or its equivalent, then further policies.
	Limits []ServiceLimit

	// Malformed lists fields that were ignored, at least in part.
	Malformed []string
}

// A ServiceLimit is a limit as a server describes it.
type ServiceLimit struct {
	// Name is the policy's name; "" if the dialect has none.
	Name string

	// Partition is the server's partition key; nil if not stated.
	Partition []byte

	// Remaining is the number of units left; -1 if not stated.
	Remaining int64

	// Within is the time for which Remaining has to last, or the wait for a unit if it is 0; -1 if not stated, [Never]
	// beyond 292 years.
	Within time.Duration

	// Quota units per Window are the policy; -1 and 0 if not stated.
	Quota  int64
	Window time.Duration

	// Unit is the unit, e.g. "requests"; empty without a policy.
	Unit string
}

// Pace returns the interval that spreads Remaining over Within: Within itself if no unit is left, and without these
// numbers Window divided by Quota, or 0.
func (l *ServiceLimit) Pace() time.Duration {
	switch {
	case l.Remaining > 0 && l.Within >= 0:
		return l.Within / time.Duration(l.Remaining)
	case l.Remaining == 0 && l.Within >= 0:
		return l.Within
	case l.Quota > 0:
		return l.Window / time.Duration(l.Quota)
	default:
		return 0
	}
}

// maxField is the length in bytes of the longest field that Read reads, all
// lines together. Servers send about a hundred bytes.
const maxField = 8 << 10

// Read reads the header of a response that arrived at now. Package client lists the fields. Read ignores malformed fields, fields of more
// than 8 KiB, and the limits of a cached response (a positive Age).
//
//   - Retry-After counts beside a status from 300 on, and the longest of several. A date counts from the response's own
//     Date, otherwise from now.
//   - Without it, a status from 400 on has the longest Within of the limits that have no unit left.
func Read(status int, h http.Header, now time.Time) Fields {
	r := &reading{h: h, now: now}
	if date, ok := parseDate(h.Get("Date")); ok {
		r.now = date
	}
	if age, ok := parseDigits(h.Get("Age")); !ok || age == 0 { // not from a cache (section 7.3 of the draft)
		r.limits()
	}
	r.wait(status)
	return r.Fields
}

// A reading is the state of one Read.
type reading struct {
	Fields
	h       http.Header
	now     time.Time // by the server's clock, if it sends a Date
	sources []string  // of the Withins of Limits
}

// line returns all lines of a field as one, and whether there are any. It returns
// nothing for a field that is too long.
func (r *reading) line(key, sep string) (string, bool) {
	lines := r.h[key]
	length := 0
	for _, line := range lines {
		if length += len(line) + len(sep); length > maxField {
			r.malformed(key)
			return "", false
		}
	}
	return strings.Join(lines, sep), len(lines) > 0
}

func (r *reading) malformed(key string) {
	if name := documented(key); !slices.Contains(r.Malformed, name) {
		r.Malformed = append(r.Malformed, name)
	}
}

// documented returns a key as documents write the field's name.
func documented(key string) string { return strings.Replace(key, "Ratelimit", "RateLimit", 1) }

func (r *reading) limits() {
	r.Limits = mergeLimits(r.readItems(keyRateLimit, r.limitItem))
	if len(r.Limits) == 0 {
		r.scalars()
	}
	policies := r.readItems(keyPolicy, r.policyItem)
	for len(r.sources) < len(r.Limits) {
		r.sources = append(r.sources, documented(keyRateLimit))
	}
	r.join(policies)
}

// join completes Limits with their policies, and appends the policies of no limit.
func (r *reading) join(policies []ServiceLimit) {
	if len(policies) == 0 {
		return
	}
	exact, named, sized := map[string]int{}, map[string]int{}, map[int64]int{}
	for i := range policies {
		p := &policies[i]
		exact[p.identity()], sized[p.Quota] = i, i
		if _, twice := named[p.Name]; !twice || p.Partition == nil {
			named[p.Name] = i
		}
	}
	used := make([]bool, len(policies))
	for i := range r.Limits {
		l := &r.Limits[i]
		j, ok := exact[l.identity()]
		if !ok {
			j, ok = named[l.Name]
		}
		if l.Quota >= 0 { // the separate fields have a limit and no name
			j, ok = sized[l.Quota]
		}
		if ok {
			p := &policies[j]
			l.Name, l.Quota, l.Window, l.Unit, used[j] = p.Name, p.Quota, p.Window, p.Unit, true
		}
	}
	for j, p := range policies {
		if !used[j] {
			r.Limits = append(r.Limits, p)
		}
	}
}

// mergeLimits merges items of one name and partition. The most restrictive numbers
// stay.
func mergeLimits(limits []ServiceLimit) []ServiceLimit {
	seen := make(map[string]int, len(limits))
	merged := limits[:0]
	for _, l := range limits {
		i, twice := seen[l.identity()]
		if !twice {
			seen[l.identity()] = len(merged)
			merged = append(merged, l)
			continue
		}
		first := &merged[i]
		first.Remaining, first.Within = min(first.Remaining, l.Remaining), max(first.Within, l.Within)
	}
	return merged
}

// identity distinguishes limits by name and partition. An empty partition differs
// from none.
func (l *ServiceLimit) identity() string {
	if l.Partition == nil {
		return l.Name
	}
	return l.Name + "\x00" + string(l.Partition)
}

// unstated is a limit without numbers.
func unstated() ServiceLimit { return ServiceLimit{Remaining: -1, Within: -1, Quota: -1} }
