// Calendars in Redis, whose clock is not the caller's.

package shared

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/limitertest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A movedClock stands still until it is moved.
type movedClock struct{ µs atomic.Int64 }

func newMovedClock() *movedClock {
	c := new(movedClock)
	c.µs.Store(1_763_729_430_000_000)
	return c
}

func (c *movedClock) now() time.Time { return time.UnixMicro(c.µs.Load()) }

func (c *movedClock) add(d time.Duration) { c.µs.Add(d.Microseconds()) }

// clockedRedis returns a client of a server whose clock is c.
func (c *movedClock) clockedRedis(client redis.UniversalClient) Client {
	return redistest.Script(client, redistest.On("eval", redistest.Inspect(func(cmd redis.Cmder) {
		args := cmd.Args()
		args[5+args[2].(int)] = strconv.FormatInt(c.µs.Load(), 10)
	})))
}

func zone(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return zone
}

var calendarLimits = []algorithms.Limit{
	algorithms.PerDay(5, nil), algorithms.PerMonth(20, nil), algorithms.PerDay(5, zone("Europe/Berlin")),
	algorithms.PerMonth(20, zone("America/Sao_Paulo")), algorithms.PerDay(5, zone("Australia/Lord_Howe")),
}

// The periods are those of the server's clock, whatever the caller's clock says,
// up to a whole period. Both know the turns.
func TestCalendarsTurnByTheServersClock(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	for i, limit := range calendarLimits {
		t.Run(limit.String(), func(t *testing.T) {
			server, own := newMovedClock(), newMovedClock()
			r := newRedis(t, server.clockedRedis(client), &Options{Now: own.now})
			want := algorithms.NewMemory(&algorithms.MemoryOptions{Now: limitertest.ExceptForSweeps(server.now)})
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			period := 22 * time.Hour
			if limit.Requests() == 20 {
				period = 27 * 24 * time.Hour
			}
			key, admitted := fmt.Sprint("usr=", i), 0
			for range 600 {
				skew := time.Duration(rng.Int64N(2*int64(period))) - period
				own.µs.Store(server.µs.Load() + skew.Microseconds())
				x, y := take(t, r, key, limit, 1), take(t, want, key, limit, 1)
				x.Source, x.Receipt, y.Receipt = y.Source, algorithms.Receipt{}, algorithms.Receipt{}
				if x != y {
					t.Fatalf("at %v, by the caller's clock %v later: got %+v, want %+v", server.now().UTC(), skew, x, y)
				}
				if x.Allowed {
					admitted++
				}
				server.add(time.Duration(rng.Int64N(int64(2 * period / time.Duration(limit.Requests())))))
			}
			if admitted == 600 || admitted < 100 {
				t.Errorf("got %d of 600 admitted, want some denied", admitted)
			}
		})
	}
}

// A clock that is wrong by more than the turns that it sends forgets nothing
// early, and every key that it writes expires.
func TestCalendarsOfAClockThatIsFarOff(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	for i, limit := range calendarLimits {
		for _, skew := range []time.Duration{-4000 * 24 * time.Hour, -100 * 24 * time.Hour, 100 * 24 * time.Hour, 4000 * 24 * time.Hour} {
			farOff(t, client, limit, fmt.Sprintf("far=%d,%v", i, skew), skew)
		}
	}
}

func farOff(t *testing.T, client *redis.Client, limit algorithms.Limit, key string, skew time.Duration) {
	t.Helper()
	server, own := newMovedClock(), newMovedClock()
	off := newRedis(t, server.clockedRedis(client), &Options{Now: own.now})
	right := newRedis(t, server.clockedRedis(client), &Options{Now: server.now})
	for range 3 {
		own.µs.Store(server.µs.Load() + skew.Microseconds())
		var admitted int64
		var last algorithms.Decision
		began := time.Now() // keys live by the real clock, and the others stand still
		for j := range 2 * limit.Requests() {
			l := off
			if j%2 == 0 {
				l = right
			}
			if last = take(t, l, key, limit, 1); last.Allowed {
				admitted++
			}
		}
		if admitted != limit.Requests() {
			t.Fatalf("%v, a clock that is %v off: got %d admitted in a period, want %d", limit, skew, admitted, limit.Requests())
		}
		ttl, err := client.PTTL(t.Context(), fmt.Sprintf("penstock:{%s}:default:cw", key)).Result()
		if err != nil || ttl < last.ResetAfter-time.Since(began) || ttl > 3*limit.Window() {
			t.Fatalf("%v, a clock that is %v off: got a key that lives for %v, %v, want %v or a little more", limit, skew, ttl, err, last.ResetAfter)
		}
		server.add(last.ResetAfter)
		if d := take(t, right, key, limit, 1); !d.Allowed || d.Remaining != limit.Requests()-1 {
			t.Fatalf("%v: got %+v after the turn, want all back", limit, d)
		}
		server.add(take(t, right, key, limit, 0).ResetAfter)
	}
}
