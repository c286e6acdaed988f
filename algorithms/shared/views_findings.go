// Finding PS204: the policies for which nothing is admitted ahead, because they allow each instance less than a unit. Beats
// refresh it, because the number of instances decides.

package shared

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// maxAsking bounds the policies that are known to ask always.
const maxAsking = 100

// An asking is the policies whose takes found an allowance below one unit, with their latest bursts.
type asking struct {
	mu     sync.Mutex
	bursts map[string]int64
}

// note notes such a take.
func (a *asking) note(policy string, burst int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bursts == nil {
		a.bursts = make(map[string]int64)
	}
	if old, known := a.bursts[policy]; old != burst && (known || len(a.bursts) < maxAsking) {
		a.bursts[strings.Clone(policy)] = burst // an assignment replaces the key of an entry, too
	}
}

// alwaysAsk says which policies ask always, and why; "" if none does.
func (v *views) alwaysAsk() string {
	v.asking.mu.Lock()
	defer v.asking.mu.Unlock()
	live := max(v.live.Load(), 1)
	var found []string
	for policy, burst := range v.asking.bursts {
		if v.allowance(burst, live) == 0 {
			found = append(found, fmt.Sprintf("%s (burst %d, %d instances)", policy, burst, live))
		}
	}
	slices.Sort(found)
	if len(found) > 3 {
		found = append(found[:3], fmt.Sprintf("and %d more", len(found)-3))
	}
	return strings.Join(found, ", ")
}

// find finds that policies ask always, or that none does.
func (v *views) find(r *report) {
	policies := v.alwaysAsk()
	r.find(policies != "", "PS204", "Takes of these policies always wait for Redis, because Options.Ahead allows each instance less than a unit: "+policies+".",
		"Raise Options.Ahead, or the burst. Or ignore this finding: the policies limit as without Ahead.")
}

// allowance is how many units of a burst each of the live instances may admit ahead.
func (v *views) allowance(burst, live int64) int64 { return burst * v.ahead / 100 / live }
