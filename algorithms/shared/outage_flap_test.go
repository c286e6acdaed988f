// A Redis that stalls again and again, one that is slow, and one stall that is
// short.

package shared

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// startLogins lets 30 calls a second arrive that fail closed, each of a key of its own.
func startLogins(t *testing.T, server *redistest.Server) *arrivals {
	limiter := must(t, clientOf(t, server.Addr(), nil), nil)
	keys := manyKeys(1_000)
	c := startArrivals(t, limiter, time.Second/30, func(i int) algorithms.Check {
		return algorithms.Check{
			Policy: "login", Key: keys[i%len(keys)], Limit: algorithms.SlidingWindowLog(5, time.Hour), Cost: 1,
			Fail: algorithms.FailClosed, Exact: true,
		}
	})
	c.awaitRedis(t, time.Time{})
	return c
}

// A Redis that stalls for 0.3 s in each second serves at least a third of the
// calls that fail closed and that come while it is up. It serves them again at
// most 2 s after the last stall.
func TestFlappingRedisServes(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	var served, up int
	var again time.Duration
	for range attempts { // the machine may be busy
		if served, up, again = flap(t); 3*served >= up && again <= 2*time.Second {
			return
		}
	}
	t.Errorf("got %d of %d calls served, and again %v after the last stall, want a third, and 2s", served, up, again)
}

// flap returns how many calls were served of the calls that came while Redis was up,
// and when the first was served after the last stall.
func flap(t *testing.T) (served, up int, again time.Duration) {
	server := redistest.Start(t)
	c := startLogins(t, server)
	defer c.dismiss()
	var ended time.Time
	for range 6 {
		server.Stop()
		time.Sleep(300 * time.Millisecond)
		server.Continue()
		ended = time.Now()
		time.Sleep(700 * time.Millisecond)
		calls, byRedis := c.between(ended, time.Now().Add(-2*defaultDeadline))
		up, served = up+len(calls), served+byRedis
	}
	again = c.awaitRedis(t, ended).Sub(ended)
	t.Logf("served %s while Redis was up; after the last stall the first is served after %v; %d trips",
		percent(served, up), again.Round(time.Millisecond), c.limiter.Stats().Fallback.Trips)
	return served, up, again
}

// After a stall of 0.25 s, calls that fail closed are served within 1 s.
func TestShortStallEnds(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c := startLogins(t, server)
	for range attempts { // the machine may be busy
		server.Stop()
		time.Sleep(250 * time.Millisecond)
		server.Continue()
		ended := time.Now()
		again := c.awaitRedis(t, ended).Sub(ended)
		t.Logf("served again after %v; %d trips", again.Round(time.Millisecond), c.limiter.Stats().Fallback.Trips)
		if again <= time.Second {
			return
		}
		time.Sleep(time.Second)
	}
	t.Errorf("Redis decided again too late after each of %d stalls", attempts)
}

// A Redis that is slower than the deadline opens the circuit, in either direction
// of the network.
func TestSlowRedisOpensTheCircuit(t *testing.T) {
	t.Parallel()
	const slow = 100 * time.Millisecond
	atOnce(t, map[string]redistest.Fault{
		"to Redis": redistest.DelayRequests(slow), "from Redis": redistest.Delay(slow),
	}, func(t *testing.T, fault redistest.Fault) {
		proxy := redistest.StartProxy(t, redistest.Start(t).Addr())
		c := startCallers(t, must(t, clientOf(t, proxy.Addr(), nil), nil), 2, 10*time.Millisecond, nil)
		c.awaitShared()
		proxy.Set(fault)
		began := time.Now()
		c.awaitOpen()
		t.Logf("open after %v", time.Since(began).Round(time.Millisecond))
		proxy.Set(redistest.Pass())
		c.awaitShared()
	})
}
