// What if all callers ask for the same key?

package main

import "github.com/penstock-go/penstock/algorithms"

var hotMeasure = measure{
	name:    "redis-hot",
	title:   "Redis on this machine, token bucket, 64 callers, one key",
	plan:    plan{callers: 64, keys: 1, quota: perSecond, lasts: second, sampled: true, onServer: true},
	figures: []figure{checksPerSecond, p99, serverCPU},
	contestants: []contestant{
		{us, loaded(onRedis(algorithms.TokenBucket))},
		{"redis_rate", loaded(redisRate())},
		{"rueidis", loaded(viaRueidis)},
		{"ulule/limiter", loaded(ululeRedis)},
	},
}
