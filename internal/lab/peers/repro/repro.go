// Package repro reproduces the red cells of RESULTS.md without the suite: each function shows one mistake in at most 30 lines.
// `go run ./peers -repro NAME` runs one.
package repro

import (
	"fmt"
	"iter"
	"maps"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/internal/lab/nottest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A function talks to a redis-server of its own if it needs one. It returns what happened, and whether that is the mistake.
type function func(rdb *redis.Client) (line string, broken bool)

// functions have the names of red cells. Cells with one cause share a function.
var functions = map[string]function{
	"redis_rate-remaining":         redisRateRemaining,
	"redis_rate-burst":             redisRateBurst,
	"redis_rate-clock":             redisRateClock,
	"httprate-wait":                httprateWait,
	"httprate-redis-wait":          httprateRedisWait,
	"httprate-keys":                httprateKeys,
	"httprate-redis-keys":          httprateRedisKeys,
	"httprate-redis-instances":     httprateRedisInstances,
	"ulule-clock":                  ululeClock,
	"throttled-clock":              throttledClock,
	"throttled-keys":               throttledKeys,
	"tollbooth-keys":               tollboothKeys,
	"go-limiter-wait":              goLimiterWait,
	"fiber-clock":                  fiberClock,
	"script-incr-clock":            incrClock,
	"script-log-time-crowd":        logTime,
	"script-log-time-skew":         logTime,
	"script-log-time-instances":    logTime,
	"script-log-time-keys":         logTime,
	"script-log-unique-clock":      logUniqueClock,
	"script-bucket-skew":           bucketSkew,
	"script-bucket-forever-expiry": bucketForeverExpiry,
	"script-bucket-forever-clock":  bucketForeverClock,
}

// SetStep steps the wall clock of this process, by seconds from the true time. The caller provides it.
var SetStep func(seconds int64)

// Run runs the function of a red cell, and returns what it says and whether it confirms the cell.
func Run(name string) (line string, broken bool, err error) {
	f, found := functions[name]
	if !found {
		return "", false, fmt.Errorf("there is no function for %q", name)
	}
	err = nottest.Run(func(owner *nottest.Owner) { line, broken = f(redistest.Start(owner).Client()) })
	return line, broken, err
}

// All returns the names of the red cells that have a function.
func All() iter.Seq[string] { return maps.Keys(functions) }
