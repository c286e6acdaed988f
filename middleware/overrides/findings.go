// What a table of overrides finds in itself.

package overrides

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// forgottenAfter is the age at which a ban without an end is most likely forgotten.
const forgottenAfter = 24 * time.Hour

// findings returns a finding for each policy with forgotten bans.
func (t *table) findings() (all []algorithms.Finding) {
	for policy, e := range t.policies {
		n, first := 0, time.Time{}
		for _, o := range e.all {
			if o.Mode != ratelimit.ModeBanned || !o.Until.IsZero() || o.Since.IsZero() || time.Since(o.Since) < forgottenAfter {
				continue
			}
			if n++; n == 1 || o.Since.Before(first) {
				first = o.Since
			}
		}
		if n > 0 {
			all = append(all, forgotten(policy, n, first.Add(forgottenAfter)))
		}
	}
	slices.SortFunc(all, func(a, b algorithms.Finding) int { return cmp.Compare(a.Policy, b.Policy) })
	return all
}

func forgotten(policy string, n int, first time.Time) algorithms.Finding {
	f := algorithms.Finding{
		Code: "PS301", First: first, Policy: policy,
		Sentence: fmt.Sprintf("Bans without an end are in force for more than a day: %d.", n),
		Remedy:   "GET /overrides of the console lists them, and who set them. Lift each with unban, or set it again with an end.",
	}
	if policy == All {
		f.Policy, f.Sentence = "", fmt.Sprintf("Bans in all policies, without an end, are in force for more than a day: %d.", n)
	}
	return f
}
