// The settings, the kinds in each, and the bars that slots must meet.

package main

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const rate = 10 // requests per second

var (
	oneSuccess = setting{
		name: "one-success", title: "One success: 1 000 clients arrive at once, and each wants one",
		clients: 1000, calls: 1, attempts: endless, within: 10 * time.Millisecond,
	}
	sharedQuota = setting{
		name: "shared-quota", title: "Shared quota: 100 clients want ten successes each",
		clients: 100, calls: 10, attempts: endless, within: time.Second,
	}
)

var (
	limit       = algorithms.TokenBucket(rate, time.Second)
	slots       = kind{"slots", crowded(limit), 1, waits(obedient)}
	slotsOfFour = kind{"slots of 4 instances", crowded(limit), 4, waits(obedient)}
	slotsOurs   = kind{"slots + client.Transport", crowded(limit), 1, ours(false)}
	slotsPaced  = kind{"slots + client.Transport, Pace", crowded(limit), 1, ours(true)}
	account     = kind{"one account", oneAccount(limit), 1, waits(obedient)}
	accountOurs = kind{"one account + client.Transport", oneAccount(limit), 1, ours(false)}
	minimum     = kind{"honest minimum", honest(limit), 1, waits(obedient)}
	jitterAdded = kind{"minimum + 10 % jitter", honest(limit), 1, waits(jittered)}
	everySecond = kind{"constant 1 s", honest(limit), 1, waits(constant)}
	randomly    = kind{"full jitter", honest(limit), 1, waits(fullJitter)}
	doubling    = kind{"exponential backoff", honest(limit), 1, waits(exponential)}
)

// kindsOf has the kinds that each setting compares.
var kindsOf = map[string][]kind{
	oneSuccess.name:  {everySecond, minimum, jitterAdded, randomly, slots, slotsOfFour, slotsOurs, account, accountOurs},
	sharedQuota.name: {everySecond, minimum, randomly, doubling, slots, slotsOfFour, slotsOurs, slotsPaced, account, accountOurs},
}

// crew is the setting of so many workers of one account. Each call has three attempts, as in the SDKs of OpenAI and Anthropic.
func crew(workers int) setting {
	return setting{clients: workers, calls: 20, attempts: 3, within: time.Second, pauses: true}
}

var (
	crews = []int{1, 2, 5, 10, 30, 100}

	bucket   = algorithms.TokenBucket(60, time.Minute).WithBurst(10)
	counter  = algorithms.SlidingWindowCounter(60, time.Minute)
	exactLog = algorithms.SlidingWindowLog(60, time.Minute)
	fixed    = algorithms.FixedWindow(60, time.Minute)
)

// teams are the kinds that crews compare.
var teams = []kind{
	{"token bucket 60/1m burst 10, true waits", honest(bucket), 1, waits(obedient)},
	{"the same, the line", oneAccount(bucket), 1, waits(obedient)},
	{"the line, 4 instances", oneAccount(bucket), 4, waits(obedient)},
	{"the line, go-retryablehttp", oneAccount(bucket), 1, retryable},
	{"the line, client.Transport", oneAccount(bucket), 1, ours(false)},
	{"sliding window counter 60/1m, true waits", honest(counter), 1, waits(obedient)},
	{"the same, the line, 4 instances", oneAccount(counter), 4, waits(obedient)},
	{"sliding window log 60/1m, true waits", honest(exactLog), 1, waits(obedient)},
	{"the same, the line, 4 instances", oneAccount(exactLog), 4, waits(obedient)},
	{"fixed window 60/1m, true waits", honest(fixed), 1, waits(obedient)},
	{"the same, jitter, 4 instances", oneAccount(fixed), 4, waits(obedient)},
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
