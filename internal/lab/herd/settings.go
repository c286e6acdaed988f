// The settings, the kinds in each, and the bars that slots must meet.

package main

import (
	"fmt"
	"time"
)

var (
	oneSuccess = setting{
		name: "one-success", title: "One success: 1 000 clients arrive at once, and each wants one", clients: 1000, wants: 1, within: 10 * time.Millisecond,
	}
	sharedQuota = setting{
		name: "shared-quota", title: "Shared quota: 100 clients want ten successes each", clients: 100, wants: 10, within: time.Second,
	}
)

var (
	slots       = kind{name: "slots", spread: true, client: obedient}
	slotsOfFour = kind{name: "slots of 4 instances", spread: true, client: obedient, instances: 4}
	slotsOurs   = kind{name: "slots + transport", spread: true, transport: patient(false)}
	slotsPaced  = kind{name: "slots + Pace", spread: true, transport: patient(true)}
	account     = kind{name: "one account", spread: true, account: true, client: obedient}
	accountOurs = kind{name: "one account + transport", spread: true, account: true, transport: patient(false)}
	minimum     = kind{name: "honest minimum", client: obedient}
	jitterAdded = kind{name: "minimum + 10 % jitter", client: jittered}
	everySecond = kind{name: "constant 1 s", client: constant}
	randomly    = kind{name: "full jitter", client: fullJitter}
	doubling    = kind{name: "exponential backoff", client: exponential}
)

// kindsOf has the kinds that each setting compares.
var kindsOf = map[string][]kind{
	oneSuccess.name:  {everySecond, minimum, jitterAdded, randomly, slots, slotsOfFour, slotsOurs, account, accountOurs},
	sharedQuota.name: {everySecond, minimum, randomly, doubling, slots, slotsOfFour, slotsOurs, slotsPaced, account, accountOurs},
}

// A bar is the highest figure that slots may reach in a setting.
type bar struct {
	setting setting
	text    string
	limit   float64
	format  string
	measure func(setting, *result) float64
}

const timeBar = "time until all are served, as a multiple of the ideal"

var bars = []bar{
	{oneSuccess, "requests per success", 2.1, "%.3f", func(_ setting, r *result) float64 { return r.perSuccess(r.requests) }},
	{oneSuccess, timeBar, 1.15, "%.3f", timeOfIdeal},
	{oneSuccess, "peak after the first second, as a multiple of the limit", 2, "%.1f", func(_ setting, r *result) float64 { return float64(r.peak()) / rate }},
	{sharedQuota, "denials per success", 1.05, "%.3f", func(_ setting, r *result) float64 { return r.perSuccess(r.denied()) }},
	{sharedQuota, timeBar, 1.10, "%.3f", timeOfIdeal},
}

func timeOfIdeal(s setting, r *result) float64 { return r.done.Seconds() / s.ideal().Seconds() }

// miss returns an error if the worst result misses the bar.
func (b *bar) miss(results []result) error {
	if v := b.worst(results); v > b.limit {
		return fmt.Errorf("%s: %s: got "+b.format+", want at most %v", b.setting.name, b.text, v, b.limit)
	}
	return nil
}

func (b *bar) worst(results []result) float64 {
	worst := 0.0
	for i := range results {
		worst = max(worst, b.measure(b.setting, &results[i]))
	}
	return worst
}
