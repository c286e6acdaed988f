// The census, and the plain commands that it sends through the lanes.

package shared

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/redistest"
)

// Instances that announce themselves are counted until they retire or have been
// silent for a while.
func TestCensus(t *testing.T) {
	t.Parallel()
	single, cluster := redistest.Start(t), redistest.StartCluster(t)
	for name, client := range map[string]redis.UniversalClient{"Client": single.Client(), "ClusterClient": cluster.Client()} {
		t.Run(name, func(t *testing.T) {
			r := newRedis(t, client, nil).redis
			wantLive := func(id string, want int64) {
				t.Helper()
				if live, err := r.beat(t.Context(), id); err != nil || live != want {
					t.Errorf("got %d live, %v, want %d", live, err, want)
				}
			}
			wantLive("a", 1)
			wantLive("b", 2)
			wantLive("a", 2)
			silent := redis.Z{Score: float64(time.Now().Add(-liveFor - time.Minute).UnixMilli()), Member: "silent"}
			if err := client.ZAdd(t.Context(), r.instancesKey(), silent).Err(); err != nil {
				t.Fatal(err)
			}
			wantLive("a", 2)
			if err := r.retire(t.Context(), "b"); err != nil {
				t.Fatal(err)
			}
			wantLive("a", 1)
			if ttl := client.PTTL(t.Context(), r.instancesKey()).Val(); ttl <= 0 || ttl > liveFor {
				t.Errorf("got a TTL of %v, want %v", ttl, liveFor)
			}
		})
	}
}

// A client with pipelines sends the census in two trips: it needs the time first.
func TestCensusTakesTwoTrips(t *testing.T) {
	client := redistest.Start(t).Client()
	hook := redistest.Script(nil)
	client.AddHook(hook)
	if _, err := newRedis(t, client, nil).redis.beat(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	var census []string
	for _, trip := range hook.Trips() {
		if trip == "time" || strings.Contains(trip, "{instances}") {
			census = append(census, trip)
		}
	}
	if len(census) != 2 || strings.Count(census[1], "\n") != 3 {
		t.Errorf("got %q, want the time and then four commands at once", census)
	}
}

// controlDeadline is the deadline of plain commands.
const controlDeadline = time.Second

// Plain commands keep the deadline, and neither open the circuit nor count as
// scripts that failed.
func TestPlainCommandsDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const deadline = 50 * time.Millisecond
		c := redistest.Script(nil, redistest.Wait(time.Hour))
		r := newRedis(t, c, &Options{Deadline: deadline})
		r.redis.circuits.Deadline = deadline // so that it can open
		for range 30 {
			start := time.Now()
			_, err := r.redis.beat(t.Context(), "a")
			if !errors.Is(err, trouble.ErrTimeout) || time.Since(start) != controlDeadline {
				t.Errorf("got %v after %v, want a timeout after %v", err, time.Since(start), controlDeadline)
			}
			synctest.Wait()
		}
		if failuresOf(r) != 0 || statsOf(r).Redis.Scripts != 0 || r.redis.circuits.AnyOpen() {
			t.Errorf("got %+v and open circuits %t, want none", statsOf(r).Redis, r.redis.circuits.AnyOpen())
		}
		if n := r.redis.underWay(); n != 0 {
			t.Errorf("%d batches are under way, want none", n)
		}
	})
}

// A plain command that is answered has no error, also if its context ends just then.
func TestPlainCommandsAreAnswered(t *testing.T) {
	t.Parallel()
	r := newRedis(t, redistest.Script(nil), nil).redis
	for i := range 50_000 {
		if err := r.transport.Do(t.Context(), redis.NewTimeCmd(t.Context(), "time")); err != nil {
			t.Fatalf("command %d: %v", i, err)
		}
	}
}

// A plain command that hangs holds up no script.
func TestScriptsBesideAPlainCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := redistest.Script(nil, redistest.On("time", redistest.Wait(time.Hour)), redistest.Reply([]any{"no reply of the script"}))
		r := newRedis(t, c, &Options{Deadline: 50 * time.Millisecond, InFlight: 1})
		go func() { _, _ = r.redis.beat(t.Context(), "a") }()
		synctest.Wait()
		start := time.Now()
		if err := r.Allow(t.Context(), checksFor(perDay, "usr=1")); !errors.Is(err, trouble.ErrReply) || time.Since(start) > 0 {
			t.Errorf("got %v after %v, want an answer of the client at once", err, time.Since(start))
		}
		time.Sleep(2 * controlDeadline)
		if got := statsOf(r).Redis.Errors[trouble.Timeout]; got != 0 {
			t.Errorf("%d timeouts are counted, want none: no script failed", got)
		}
	})
}

// Services with one prefix count as instances of one service: each takes a smaller
// share of its limits when Redis is away. A prefix of its own keeps it apart.
func TestPrefixesKeepServicesApart(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	one := must(t, client, &Options{Prefix: "both"})
	other := must(t, client, &Options{Prefix: "both"})
	apart := must(t, client, &Options{Prefix: "apart"})
	redistest.Until(t, "both count two instances", func() bool {
		return one.Stats().Fallback.Instances == 2 && other.Stats().Fallback.Instances == 2
	})
	if n := apart.Stats().Fallback.Instances; n != 1 {
		t.Errorf("a service with a prefix of its own counts %d instances, want 1", n)
	}
}
