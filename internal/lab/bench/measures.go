// All measures, with their contestants, figures and bars.

package main

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/middleware"
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
)

var measures = slices.Concat(
	curve(), aheadMeasures(), policyMeasures, processMeasures,
	redisMeasures, instructionMeasures, bareMeasures, memoryMeasures, httpMeasures)

var redisMeasures = []measure{{
	name:    "redis-hot",
	title:   "Redis, token bucket, 64 callers, one key",
	plan:    plan{callers: 64, keys: 1, quota: perSecond, lasts: second, sampled: true, onServer: true, mayFail: true},
	figures: []figure{checksPerSecond, p99, serverCPU, failures},
	contestants: []contestant{
		{us, loaded(onRedis(algorithms.TokenBucket))},
		{"redis_rate", loaded(redisRate())},
		{"throttled", loaded(throttledRedis)},
		{"ulule/limiter", loaded(ululeRedis)},
		{"rueidis", loaded(viaRueidis)},
	},
	bars: []bar{{figure: checksPerSecond, against: []string{"redis_rate"}, atLeast: 3}},
}, {
	name:    "redis-bytes",
	title:   "Redis, memory of 100 000 keys, each asked for once",
	plan:    plan{keys: 100_000, quota: perDay},
	once:    true,
	figures: []figure{bytesPerKey},
	contestants: []contestant{
		{us, stored(onRedis(algorithms.TokenBucket), 1)},
		{"redis_rate", stored(redisRate(), 1)},
		{"throttled", stored(throttledRedis, 1)},
		{"ulule/limiter", stored(ululeRedis, 1)},
		{"rueidis", stored(viaRueidis, 1)},
		{"leaky bucket", stored(onRedis(algorithms.LeakyBucket), 1)},
		{"sliding window counter", stored(onRedis(algorithms.SlidingWindowCounter), 1)},
		{"fixed window", stored(onRedis(algorithms.FixedWindow), 1)},
		{"calendar window", stored(onRedis(perMonth), 1)},
		{"concurrent, 1 running", stored(onRedis(algorithms.Concurrent), 1)},
		{"sliding window log, 1 entry", stored(onRedis(algorithms.SlidingWindowLog), 1)},
		{"sliding window log, 10 entries", stored(onRedis(algorithms.SlidingWindowLog), 10)},
	},
	bars: []bar{{figure: bytesPerKey, against: []string{"redis_rate"}, atMost: 1}},
}, {
	name:        "redis-hold",
	title:       "Redis, the longest time that a batch blocks it",
	figures:     []figure{holdLongest, holdTypical},
	contestants: mixes,
	bars:        []bar{{figure: holdLongest, worst: true, atMost: 500, why: whyHold}},
}}

// perMonth returns a limit of the calendar, whatever the window is.
func perMonth(requests int64, _ time.Duration) algorithms.Limit {
	return algorithms.PerMonth(requests, nil)
}

var memoryMeasures = []measure{{
	name:    "memory",
	title:   "Memory, token bucket, one goroutine, 10 000 keys",
	plan:    plan{callers: 1, keys: 10_000, quota: perSecond, lasts: instant},
	times:   closeTimes,
	figures: []figure{perCheck, allocations},
	contestants: []contestant{
		{us, loaded(inMemory)},
		{"algorithms.Allow", loaded(byAllow)},
		{"go-limiter", loaded(goLimiterMemory)},
		{"ulule/limiter", loaded(ululeMemory)},
		{"x/time/rate in a map", loaded(xTimeRate)},
		{"a plain map", loaded(plainMap)},
	},
	bars: []bar{
		{figure: perCheck, who: "algorithms.Allow", against: []string{"go-limiter"}, atMost: 1.2, why: whyMemory},
		{figure: allocations, who: "algorithms.Allow", atMost: 0, firm: true},
		{figure: perCheck, against: []string{"go-limiter"}, atMost: 1.1, why: whyMemory},
		{figure: allocations, atMost: 0, firm: true},
	},
}, {
	name:    "memory-cores",
	title:   "Memory, two goroutines instead of one, 10 000 keys",
	plan:    plan{keys: 10_000, quota: perSecond, lasts: instant},
	figures: []figure{speedup},
	contestants: []contestant{
		{us, scaled(inMemory)},
		{"go-limiter", scaled(goLimiterMemory)},
		{"ulule/limiter", scaled(ululeMemory)},
		{"x/time/rate in a map", scaled(xTimeRate)},
	},
	bars: []bar{{figure: speedup, atLeast: 1.6, why: whyCores}},
}, {
	name:    "memory-growth",
	title:   "Memory, 1 000 000 keys instead of 1 000, one goroutine",
	plan:    plan{callers: 1, quota: quota{1_000_000, time.Hour}, lasts: instant},
	figures: []figure{growth, perCheck},
	contestants: []contestant{
		{us, grown(inMemory)},
		{"a plain map", grown(plainMap)},
		{"go-limiter", grown(goLimiterMemory)},
	},
	bars: []bar{{figure: growth, against: []string{"a plain map"}, atMost: 1}},
}, {
	name:    "memory-bytes",
	title:   "Memory, heap of 1 000 000 keys, each asked for once",
	plan:    plan{keys: 1_000_000, quota: perDay},
	once:    true,
	figures: []figure{bytesPerKey},
	contestants: []contestant{
		{us, held(inMemory)},
		{"go-limiter", held(goLimiterMemory)},
		{"ulule/limiter", held(ululeMemory)},
		{"x/time/rate in a map", held(xTimeRate)},
		{"a plain map", held(plainMap)},
	},
	bars: []bar{{figure: bytesPerKey, atMost: 120}},
}}

var httpMeasures = []measure{{
	name:    "middleware",
	title:   "Middleware on Memory, by IP, the same headers, 10 000 addresses",
	plan:    plan{callers: 1, keys: 10_000, quota: perSecond, lasts: instant, key: address},
	times:   closeTimes,
	figures: []figure{perCheck, allocations, bytesPerCheck},
	contestants: []contestant{
		{us, loaded(penstockMemoryHTTP(ratelimit.Options{Headers: headers.XRateLimit}))},
		{"penstock, draft's headers, observed", loaded(penstockMemoryHTTP(observed))},
		{"penstock, all fields", loaded(penstockMemoryHTTP(ratelimit.Options{Headers: headers.Draft | headers.XRateLimit}))},
		{"httprate", loaded(httprateHTTP)},
		{"go-limiter", loaded(httplimitHTTP)},
		{"ulule/limiter", loaded(ululeHTTP)},
	},
	bars: []bar{
		{figure: perCheck, against: []string{"go-limiter"}, atMost: 1.1, why: whyMiddleware},
		{figure: allocations, atMost: 3, why: whyMiddleware},
		{figure: bytesPerCheck, atMost: 450, why: whyMiddleware},
	},
}, {
	name:    "middleware-policies",
	title:   "Middleware on Memory, a request with one or three policies, 10 000 addresses",
	plan:    plan{callers: 1, keys: 10_000, quota: perSecond, lasts: instant, key: address},
	times:   closeTimes,
	figures: []figure{perCheck, allocations, bytesPerCheck},
	contestants: []contestant{
		{"one policy", loaded(penstockPoliciesHTTP(1))},
		{"three policies", loaded(penstockPoliciesHTTP(3))},
	},
	bars: []bar{{figure: perCheck, who: "three policies", against: []string{"one policy"}, atMost: 1.8, why: whyMemoryPolicies}},
}, {
	name:    "denials",
	title:   "Middleware on a shared limiter, a denial that is remembered, with its body",
	plan:    plan{callers: 1, keys: 1, quota: quota{1, 24 * time.Hour}, lasts: instant, onServer: true, key: address},
	figures: []figure{perCheck, allocations, commands},
	contestants: []contestant{
		{us, loaded(penstockSharedHTTP)},
	},
	bars: []bar{
		{figure: perCheck, atMost: 1_000, why: whyDenial},
		{figure: allocations, atMost: 6},
		{figure: commands, atMost: 0.01}, // one per second, when the limiter forgets the denial
	},
}}
