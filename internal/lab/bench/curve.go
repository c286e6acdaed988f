// All measures, and the largest of them: how many checks, and how fast, if so many callers count in Redis over a network?

package main

import (
	"fmt"
	"slices"
	"time"
)

// These quotas admit every check of a measure, so that every contestant writes. That
// costs more than a denial.
var (
	perMinute = quota{1_000, time.Minute}     // for many keys
	perSecond = quota{1_000_000, time.Second} // for one key
	// perDay refills nothing while keys are counted, so that none expires.
	perDay = quota{100, 24 * time.Hour}
)

const (
	second  = time.Second
	instant = 300 * time.Millisecond // long enough for checks of 100 ns

	// closeTimes is how many rounds take the place of one where contestants differ by less than rounds do.
	closeTimes = 2
)

var measures = slices.Concat(
	curve(), aheadMeasures(), []measure{hotMeasure, memoryMeasure}, keyMeasures, []measure{middlewareMeasure})

var hotMeasure = measure{
	name:    "redis-hot",
	title:   "Redis on this machine, token bucket, 64 callers, one key",
	plan:    plan{callers: 64, keys: 1, quota: perSecond, lasts: second, sampled: true, onServer: true},
	figures: []figure{checksPerSecond, p99, serverCPU},
	contestants: []contestant{
		{us, loaded(onRedis)},
		{"redis_rate", loaded(redisRate())},
		{"rueidis", loaded(viaRueidis)},
		{"ulule/limiter", loaded(ululeRedis)},
	},
}

// quickCallers is the only point of the curves in a quick run.
const quickCallers = 64

// curve returns a measure per network and number of callers.
func curve() (points []measure) {
	for _, n := range networks {
		for _, callers := range []int{1, 8, 64, 256} {
			m := measure{
				name:  fmt.Sprintf("curve-%s-%d", n.name, callers),
				title: fmt.Sprintf("Redis over %s, token bucket, 10 000 keys", n.title()),
				at:    plural(callers, "caller"),
				plan: plan{
					callers: callers, keys: 10_000, quota: perMinute, network: n,
					warmUp: second / 10, lasts: second * 35 / 100, sampled: true, onServer: true,
				},
				times:   1,
				figures: []figure{checksPerSecond, p50, p99},
				contestants: []contestant{
					{us, loaded(onRedis)},
					{"redis_rate", loaded(redisRate())},
					{"redis_rate, 256 connections", loaded(redisRate(pooled))},
					{"rueidis", loaded(viaRueidis)},
					{"autopipeline", loaded(viaAutoPipeline)},
					{"ulule/limiter", loaded(ululeRedis)},
				},
				long: callers != quickCallers,
				why:  "A call that just misses a batch waits for the next place in flight. Small batches of many connections also wait for each other in Redis.",
			}
			if callers <= 64 {
				m.times = closeTimes // a network hides most of what a limiter does
			}
			if n == loopback {
				m.figures = []figure{checksPerSecond, p50, p99, serverCPU, allocations}
				m.most = map[figure]float64{allocations: 25}
				m.why = "On one machine the CPU is the limit: clients, Redis and this program share the cores. ulule/limiter's fixed window is two commands, " +
					"which cost Redis less than a script, and a batch of few calls costs more per check than one of many."
			}
			points = append(points, m)
		}
	}
	return points
}

func plural(n int, noun string) string {
	if n == 1 {
		return "one " + noun
	}
	return fmt.Sprint(n, " ", noun, "s")
}
