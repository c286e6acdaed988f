// The curve over callers: checks per second and latencies of all contestants that
// count in Redis, on each network.

package main

import (
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
)

var callerCounts = []int{1, 2, 4, 8, 16, 64, 256, 1024}

const (
	// closeTimes is how many rounds take the place of one where contestants differ by less than rounds do.
	closeTimes = 3

	fewCallers = 64 // a network hides most of what a limiter does
)

// quickCallers is the only point of the curves in a quick run.
const quickCallers = 64

var curveFigures = []figure{checksPerSecond, p50, p99, serverCPU, allocations}

// curve returns a measure per network and number of callers that has a bar or is a point of a plot.
func curve() (points []measure) {
	for _, n := range networks {
		for _, callers := range callerCounts {
			bars := curveBars(n, callers)
			if len(bars) == 0 && !n.plotted() {
				continue
			}
			times := 1
			if callers <= fewCallers {
				times = closeTimes
			}
			points = append(points, measure{
				name:  fmt.Sprintf("curve-%s-%d", n.name, callers),
				title: fmt.Sprintf("%s, %s", n.title(), plural(callers, "caller")),
				plan: plan{
					callers: callers, keys: 10_000, quota: perMinute, network: n,
					warmUp: second / 10, lasts: second * 35 / 100, sampled: true, onServer: true,
				},
				figures:     judgedOn(n),
				contestants: onRedisAll(),
				curve:       true,
				times:       times,
				long:        callers != quickCallers,
				bars:        bars,
			})
		}
	}
	return points
}

// judgedOn returns the figures that have a bar on a network.
func judgedOn(n network) []figure {
	return slices.DeleteFunc(slices.Clone(curveFigures), func(f figure) bool {
		return !slices.ContainsFunc(callerCounts, func(callers int) bool {
			return slices.ContainsFunc(curveBars(n, callers), func(b bar) bool { return b.figure == f })
		})
	})
}

// onRedisAll returns all contestants that count in Redis, each as its README says.
func onRedisAll() []contestant {
	return []contestant{
		{us, loaded(onRedis(algorithms.TokenBucket))},
		{"redis_rate", loaded(redisRate())},
		{"redis_rate, 256 connections", loaded(redisRate(pooled))},
		{"rueidis", loaded(viaRueidis)},
		{"autopipeline", loaded(viaAutoPipeline)},
		{"ulule/limiter", loaded(ululeRedis)},
		{"throttled", loaded(throttledRedis)},
	}
}

// redisPeers are the contestants with which the bars of the curve compare penstock.
var redisPeers = []string{"redis_rate", "redis_rate, 256 connections", "rueidis", "autopipeline", "ulule/limiter", "throttled"}

// A pooled client has up to 256 connections, instead of go-redis's ten per core.
func pooled(o *redis.Options) { o.PoolSize = 256 }

// curveBars returns the bars of a point.
func curveBars(n network, callers int) (bars []bar) {
	add := func(group string, b bar) {
		b.group = group
		bars = append(bars, b)
	}
	rueidis, redisRate := []string{"rueidis"}, []string{"redis_rate"}
	switch n {
	case near, far:
		if callers <= 256 {
			add("0.5 and 2 ms, 1 to 256 callers, the best peer", bar{figure: p50, against: redisPeers, atMost: 1.1, why: whyNetwork})
			add("0.5 and 2 ms, 1 to 256 callers, the best peer", bar{figure: checksPerSecond, against: redisPeers, atLeast: 0.95, why: whyNetwork})
		}
		if callers == 256 {
			add("0.5 and 2 ms, 256 callers", bar{figure: checksPerSecond, against: rueidis, atLeast: 1.1, why: whyNetwork})
		}
	case loopback:
		if 4 <= callers && callers <= 256 {
			add("loopback, 4 to 256 callers, the best peer", bar{figure: p50, against: redisPeers, atMost: 1.1, why: whyLoopback})
			add("loopback, 4 to 256 callers, the best peer", bar{figure: checksPerSecond, against: redisPeers, atLeast: 0.95, why: whyLoopback})
		}
		if least := map[int]float64{4: 0.95, 16: 0.8}[callers]; least > 0 {
			add("loopback, "+plural(callers, "caller"), bar{figure: checksPerSecond, against: rueidis, atLeast: least, why: whyLoopback})
		}
		if callers >= 64 {
			add("loopback, 64 callers and more", bar{figure: checksPerSecond, against: rueidis, atLeast: 1.3, why: whyLoopback})
		}
		if callers == 256 {
			add("loopback, 256 callers", bar{figure: serverCPU, against: redisRate, atMost: 0.25, why: whyServerCPU})
		}
		if callers == 1 {
			add("loopback, one caller", bar{figure: p50, against: redisRate, atMost: 1.15, why: whyAlone})
			add("loopback, one caller", bar{figure: allocations, atMost: 25, firm: true})
		}
	}
	if slices.Contains([]int{64, 256}, callers) {
		add("each network, 64 and 256 callers, the best peer", bar{figure: p99, against: redisPeers, atMost: 1.1, why: whyTail})
	}
	return bars
}

func plural(n int, noun string) string {
	if n == 1 {
		return "one " + noun
	}
	return thousands(n) + " " + noun + "s"
}
