package algorithms_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A clockedRedis is a client of a server whose clock is not the caller's.
type clockedRedis struct {
	client redis.UniversalClient
	server *fakeClock
}

func (c clockedRedis) Process(ctx context.Context, cmd redis.Cmder) error {
	if args := cmd.Args(); cmd.Name() == "evalsha" || cmd.Name() == "eval" {
		keys, _ := args[2].(int)
		args[3+keys] = strconv.FormatInt(c.server.µs.Load(), 10)
	}
	return c.client.Process(ctx, cmd)
}

var calendarLimits = []algorithms.Limit{
	algorithms.PerDay(5, nil), algorithms.PerMonth(20, nil), algorithms.PerDay(5, location("Europe/Berlin")),
	algorithms.PerMonth(20, location("America/Sao_Paulo")), algorithms.PerDay(5, location("Australia/Lord_Howe")),
}

func location(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return zone
}

// The periods are those of the server's clock, whatever the caller's says, up
// to a whole period. Both know the turns.
func TestCalendarsTurnByTheServersClock(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	for i, limit := range calendarLimits {
		t.Run(limit.String(), func(t *testing.T) {
			server, own := newClock(), newClock()
			shared := algorithms.Must(algorithms.NewRedis(clockedRedis{client, server}, &algorithms.RedisOptions{Now: own.now, Timeout: time.Minute}))
			want := newMemory(t, &algorithms.MemoryOptions{Now: server.now})
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			period := 22 * time.Hour
			if limit.Requests() == 20 {
				period = 27 * 24 * time.Hour
			}
			key, admitted := fmt.Sprint("usr=", i), 0
			for range 600 {
				skew := time.Duration(rng.Int64N(2*int64(period))) - period
				own.µs.Store(server.µs.Load() + skew.Microseconds())
				x, y := take(t, shared, key, limit), take(t, want, key, limit)
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
// early, and what it writes expires.
func TestCalendarsOfAClockThatIsFarOff(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	for i, limit := range calendarLimits {
		for _, skew := range []time.Duration{-4000 * 24 * time.Hour, -100 * 24 * time.Hour, 100 * 24 * time.Hour, 4000 * 24 * time.Hour} {
			server, own := newClock(), newClock()
			off := algorithms.Must(algorithms.NewRedis(clockedRedis{client, server}, &algorithms.RedisOptions{Now: own.now, Timeout: time.Minute}))
			right := algorithms.Must(algorithms.NewRedis(clockedRedis{client, server}, &algorithms.RedisOptions{Now: server.now, Timeout: time.Minute}))
			key := fmt.Sprintf("far=%d,%v", i, skew)
			for range 3 {
				own.µs.Store(server.µs.Load() + skew.Microseconds())
				var admitted int64
				var last algorithms.Decision
				for j := range 2 * limit.Requests() {
					l := off
					if j%2 == 0 {
						l = right
					}
					if last = take(t, l, key, limit); last.Allowed {
						admitted++
					}
				}
				if admitted != limit.Requests() {
					t.Fatalf("%v, a clock that is %v off: got %d admitted in a period, want %d", limit, skew, admitted, limit.Requests())
				}
				ttl, err := client.PTTL(t.Context(), fmt.Sprintf("penstock:{%s}:%s:cw", key, algorithms.DefaultPolicy)).Result()
				if err != nil || ttl < last.ResetAfter || ttl > 3*limit.Window() {
					t.Fatalf("%v, a clock that is %v off: got a key that lives for %v, %v, want %v or a little more", limit, skew, ttl, err, last.ResetAfter)
				}
				server.add(last.ResetAfter)
				if d := take(t, right, key, limit); !d.Allowed || d.Remaining != limit.Requests()-1 {
					t.Fatalf("%v: got %+v after the turn, want all back", limit, d)
				}
				d, err := algorithms.Peek(t.Context(), right, key, limit)
				if err != nil {
					t.Fatal(err)
				}
				server.add(d.ResetAfter)
			}
		}
	}
}

// What a day has used counts in the month of that day, and the other way round;
// windows of the epoch have keys of their own.
func TestCalendarLimitsChange(t *testing.T) {
	clock := newClock() // on 21 November
	m := newMemory(t, &algorithms.MemoryOptions{Now: clock.now})
	day, month := algorithms.PerDay(5, nil), algorithms.PerMonth(20, nil)
	steps := []struct {
		limit algorithms.Limit
		pause time.Duration
		want  int64 // remaining after a take
	}{
		{day, 0, 4},
		{day, 0, 3},
		{month, 0, 17},
		{day, 0, 1},
		{algorithms.PerDay(5, location("Asia/Tokyo")), 0, 0},
		{algorithms.FixedWindow(5, 24*time.Hour), 0, 4},
		{day, 24 * time.Hour, 4},
		{month, 0, 18},
		{month, 24 * time.Hour, 17},
		{day, 0, 1},
		{month, 10 * 24 * time.Hour, 19},
	}
	for i, s := range steps {
		clock.add(s.pause)
		if d := take(t, m, "usr=1", s.limit); !d.Allowed || d.Remaining != s.want {
			t.Errorf("step %d, %v: got %+v, want %d remaining", i, s.limit, d, s.want)
		}
	}
}

func TestCalendarLimitsAreComparable(t *testing.T) {
	berlin, again := location("Europe/Berlin"), location("Europe/Berlin")
	if berlin == again {
		t.Fatal("the zone was loaded once; this test is about zones that were loaded twice")
	}
	if algorithms.PerDay(1, berlin) != algorithms.PerDay(1, again) {
		t.Error("limits of a zone that was loaded twice differ")
	}
	if algorithms.PerDay(1, nil) != algorithms.PerDay(1, time.UTC) {
		t.Error("limits without a zone are not those of UTC")
	}
	if algorithms.PerDay(1, berlin) == algorithms.PerMonth(1, berlin) || algorithms.PerDay(1, berlin) == algorithms.PerDay(1, nil) {
		t.Error("different limits are the same")
	}
	for _, zone := range []*time.Location{time.Local, time.FixedZone("", 3600), time.FixedZone("UTC", 3600), time.FixedZone("CET", 3600), time.FixedZone("Mars/Olympus", 0)} {
		if algorithms.PerDay(1, zone).Validate() == nil {
			t.Errorf("the zone %q is no mistake", zone)
		}
	}
}
