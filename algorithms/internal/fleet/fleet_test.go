// Package fleet simulates fleets of instances. Each instance has the real
// middleware, the real limiter and the real client of Redis. A model of Redis
// decides by the real steps. A seed draws the fleet, its traffic, an outage, and a
// rolling deploy in the middle of it. The time is a bubble's, so an hour takes
// seconds. Each seed is played twice: without and with takes that are admitted ahead.
//
//	PENSTOCK_SEEDS=0-99 go test -count=1 -run TestFleet ./algorithms/internal/fleet
//
// plays the seeds 0 to 99, and PENSTOCK_SEEDS=17 plays one of them again. The plan
// of a seed is always the same. The scheduler and the jitter of probes are not, so
// a fault that needs two events at one instant may take several runs.

package fleet

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/internal/longtest"
)

// Settings of longer runs.
const (
	envSeeds = "PENSTOCK_SEEDS" // the seeds to play, such as 17 or 0-99
	envDay   = "PENSTOCK_DAY"   // the length of the day, such as 24h
)

func init() { redis.SetLogger(silent{}) }

// Silent drops the client's lines about connections, which an outage makes many.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// A bubble fails if a goroutine is left at its end.
func TestFleet(t *testing.T) {
	first, last := seeds(t)
	playAll(t, first, last)
}

// TestMoreFleets plays the seeds that follow those of TestFleet.
func TestMoreFleets(t *testing.T) {
	longtest.Skip(t)
	playAll(t, 6, 11)
}

func playAll(t *testing.T, first, last uint64) {
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) { inBubble(t, newPlan(seed)) })
		t.Run(fmt.Sprintf("seed-%d-ahead", seed), func(t *testing.T) { inBubble(t, newPlan(seed).goAhead()) })
	}
}

func TestDay(t *testing.T) {
	lasts := 10 * time.Minute
	if text := os.Getenv(envDay); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	first, _ := seeds(t)
	inBubble(t, newDay(first, lasts))
}

func inBubble(t *testing.T, p *plan) {
	// Pools keep timers and channels of an earlier bubble, which this one must not
	// use. Two collections empty all pools.
	runtime.GC()
	runtime.GC()
	synctest.Test(t, func(t *testing.T) { play(t, p) })
}

// seeds returns the first and the last seed to play.
func seeds(t *testing.T) (first, last uint64) {
	text := os.Getenv(envSeeds)
	if text == "" {
		return 0, 5
	}
	from, to, several := strings.Cut(text, "-")
	if !several {
		to = from
	}
	first, err := strconv.ParseUint(from, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if last, err = strconv.ParseUint(to, 10, 64); err != nil {
		t.Fatal(err)
	}
	return first, last
}
