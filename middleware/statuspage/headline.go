// The first sentence of the page: what is denied, by which policy, for which
// clients, and whether Redis is up.

package statuspage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

const namedPolicies = 2 // in the headline

func (v *view) headline() string {
	if redis := v.redisClause(); redis != "" {
		return v.deniedClause() + "; " + redis + "."
	}
	return v.deniedClause() + "."
}

func (v *view) deniedClause() string {
	switch {
	case v.Requests == 0:
		return "No request came in the last minute"
	case v.Denied == 0:
		return fmt.Sprintf("None of %s was denied in the last minute", plural(v.Requests, "request", "requests"))
	}
	text := fmt.Sprintf("%s of %s (%s) were denied in the last minute: ",
		groupDigits(v.Denied), plural(v.Requests, "request", "requests"), percentText(v.Denied, v.Requests))
	if v.Denied == 1 {
		text = strings.Replace(text, "were", "was", 1)
	}
	denying := slices.DeleteFunc(slices.Clone(v.Policies), func(p policyView) bool { return p.Denied() == 0 })
	slices.SortStableFunc(denying, func(a, b policyView) int { return cmp.Compare(b.Denied(), a.Denied()) })
	var parts []string
	for _, p := range denying[:min(len(denying), namedPolicies)] {
		parts = append(parts, p.deniedText())
	}
	if n := len(denying) - namedPolicies; n > 0 {
		parts = append(parts, plural(n, "other policy denied the rest", "other policies denied the rest"))
	}
	if last := len(parts) - 1; last > 0 {
		parts[last] = "and " + parts[last]
	}
	return text + strings.Join(parts, ", ") + v.clientClause()
}

func (p policyView) deniedText() string {
	which := groupDigits(p.Denied()) + " of " + groupDigits(p.Requests)
	switch all := p.Denied() == p.Requests; {
	case all && p.Requests == 1:
		which = "all of its requests"
	case all:
		which = "all of its " + groupDigits(p.Requests) + " requests"
	}
	return p.Name + " denied " + which + p.why()
}

// why explains denials that are not those of a limit.
func (p policyView) why() string {
	switch most := p.Denied(); {
	case 2*p.Outcomes["failed_closed"] > most:
		return " because it fails closed"
	case 2*p.Outcomes["banned"] > most:
		return " because of bans"
	default:
		return ""
	}
}

// clientClause says which client the limits denied most. TopDenied covers up to
// twenty minutes, so the clause leaves out clients that were not denied lately.
func (v *view) clientClause() string {
	begin := v.At.Add(-time.Minute)
	first := slices.IndexFunc(v.Clients, func(c clientView) bool { return !c.Last.Before(begin) })
	if first < 0 {
		return ""
	}
	switch c := v.Clients[first]; {
	case first > 0:
		return "; one of the denied clients is " + c.Client
	case c.Denied == c.Of:
		return "; one client received all denials over a limit: " + c.Client
	case 2*c.Denied > c.Of:
		return fmt.Sprintf("; one client received %s of the denials over a limit: %s", percentText(c.Denied, c.Of), c.Client)
	default:
		return fmt.Sprintf("; no client received more than %s of the denials over a limit", percentText(c.Denied, c.Of))
	}
}

func (v *view) redisClause() string {
	if !v.Shared() {
		return "limits count in the memory of this process"
	}
	var parts []string
	for _, l := range v.Limiters {
		switch {
		case l.Breaker != "closed": // in memory, or open: the badge says that, and since when
		case l.Since.IsZero():
			parts = append(parts, fmt.Sprintf("%s has been connected since the start, %s ago", l.Title(), spanText(time.Duration(v.UpSeconds)*time.Second)))
		default:
			parts = append(parts, fmt.Sprintf("%s has been connected for %s", l.Title(), spanText(v.At.Sub(l.Since))))
		}
	}
	return strings.Join(parts, ", ")
}
