package middleware

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// statusData is what the page is made of.
type statusData struct {
	*statusView
	Reload bool
}

// statusFuncs are what the page writes figures with.
var statusFuncs = template.FuncMap{
	"style":       func() template.CSS { return template.CSS(statusCSS) },
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
	"part":        thousandths,
}

// spanText returns a duration in its largest unit.
func spanText(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return strconv.FormatInt(int64(max(0, d)/time.Second), 10) + " s"
	case d < 2*time.Hour:
		return strconv.FormatInt(int64(d/time.Minute), 10) + " min"
	case d < 48*time.Hour:
		return strconv.FormatInt(int64(d/time.Hour), 10) + " h"
	default:
		return strconv.FormatInt(int64(d/(24*time.Hour)), 10) + " days"
	}
}

// shortTime returns a duration with as many digits as a quantile has meaning.
func shortTime(d time.Duration) string {
	unit, name := time.Nanosecond, "ns"
	switch {
	case d >= time.Second:
		unit, name = time.Second, "s"
	case d >= time.Millisecond:
		unit, name = time.Millisecond, "ms"
	case d >= time.Microsecond:
		unit, name = time.Microsecond, "µs"
	}
	whole, tenths := d/unit, d%unit*10/unit
	if whole >= 100 || unit == time.Nanosecond {
		return fmt.Sprintf("%d %s", whole, name)
	}
	return fmt.Sprintf("%d.%d %s", whole, tenths, name)
}

// groupDigits returns a count with its digits in groups of three.
func groupDigits(n any) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// perSecond returns a rate with one decimal: that of one second at least, since
// less says nothing.
func perSecond(n uint64, ms int64) string {
	tenths := n * 10_000 / uint64(max(1000, ms))
	if tenths >= 1000 {
		return groupDigits(tenths/10) + "/s"
	}
	return fmt.Sprintf("%d.%d/s", tenths/10, tenths%10)
}

// percentText returns a part in per cent, and what is not none never as 0 %.
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

// thousandths returns a part in thousandths.
func thousandths(n, of uint64) uint64 { return min(n*1000/max(1, of), 1000) }

// health is the page in a few words.
type health struct{ Class, Text string }

// Health returns what an operator should know first.
func (v *statusView) Health() health {
	open := slices.ContainsFunc(v.Limiters, func(l limiterView) bool { return l.Breaker == "open" })
	switch n := len(v.Diagnoses()); {
	case open:
		return health{"bad", "Redis is not available"}
	case n == 1:
		return health{"warn", "1 finding"}
	case n > 1:
		return health{"warn", fmt.Sprintf("%d findings", n)}
	default:
		return health{"good", "all is well"}
	}
}

// A diagnosis is a finding about all the policies that have it.
type diagnosis struct {
	Finding
	Policies []string
}

// Diagnoses returns the findings, one for each mistake, with the time when it was
// first found.
func (v *statusView) Diagnoses() (all []diagnosis) {
	for _, f := range v.Findings { // in the order of codes
		if n := len(all); n == 0 || all[n-1].Code != f.Code || all[n-1].Sentence != f.Sentence {
			all = append(all, diagnosis{Finding: f})
		}
		last := &all[len(all)-1]
		if f.First.Before(last.First) {
			last.First = f.First
		}
		if f.Policy != "" && !slices.Contains(last.Policies, f.Policy) {
			last.Policies = append(last.Policies, f.Policy)
		}
	}
	return all
}

// Slowest returns the durations of the slowest source of the last minute; nil if
// nothing was decided.
func (v *statusView) Slowest() *decisionView {
	var slowest *decisionView
	for i := range v.Decisions {
		if d := &v.Decisions[i]; d.Count > 0 && (slowest == nil || d.P99 > slowest.P99) {
			slowest = d
		}
	}
	return slowest
}

// Offended reports whether anybody was denied.
func (v *statusView) Offended() bool {
	return slices.ContainsFunc(v.Policies, func(p policyStatus) bool { return len(p.Offenders) > 0 })
}

// Explained says who the source is.
func (d decisionView) Explained() string {
	switch d.Source {
	case algorithms.Shared.String():
		return "with all instances, by Redis or what it said"
	case algorithms.Local.String():
		return "by this instance alone"
	default:
		return "by nobody: a failure mode, or a ban"
	}
}

var (
	passes = []Outcome{OutcomeAllowed, OutcomeDegradedAllowed, OutcomeFailedOpen}
	denies = []Outcome{OutcomeDenied, OutcomeDegradedDenied, OutcomeFailedClosed, OutcomeBanned}
)

func (p policyStatus) sum(outcomes []Outcome) (n uint64) {
	for _, o := range outcomes {
		n += p.Outcomes[o.String()]
	}
	return n
}

// Denied returns how many requests the policy denied.
func (p policyStatus) Denied() uint64 { return p.sum(denies) }

// PassedPart returns which part of the requests passed, in thousandths.
func (p policyStatus) PassedPart() uint64 { return thousandths(p.sum(passes), p.Requests) }

// DeniedPart returns which part of them was denied, in thousandths.
func (p policyStatus) DeniedPart() uint64 { return thousandths(p.Denied(), p.Requests) }

// outcomeView is how often there was an outcome.
type outcomeView struct {
	Name, Class string
	Count       uint64
}

// Others returns what operators should see beside what was allowed and denied as
// it should be.
func (p policyStatus) Others() (others []outcomeView) {
	for o := range Outcome(Outcomes) {
		n := p.Outcomes[o.String()]
		if n == 0 || o == OutcomeAllowed || o == OutcomeDenied {
			continue
		}
		class := "warn"
		if slices.Contains(denies, o) {
			class = "bad"
		}
		others = append(others, outcomeView{o.String(), class, n})
	}
	return others
}
