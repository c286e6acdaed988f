package algorithms_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

func wantNotReady(t *testing.T, r *algorithms.Redis, says, advice string) {
	t.Helper()
	err := r.Ready(t.Context())
	if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), advice) {
		t.Errorf("got %v, want an error that says %q and %q", err, says, advice)
	}
	if got := algorithms.Classify(err); got != algorithms.ErrorConfiguration {
		t.Errorf("%v: got class %v, want %v", err, got, algorithms.ErrorConfiguration)
	}
}

// Ready names what is missing, however little that is.
func TestReadyFindsMistakesInTheConfiguration(t *testing.T) {
	t.Parallel()
	refuses := func(says, advice string, rights ...string) {
		t.Run(strings.Join(rights, " "), func(t *testing.T) {
			t.Parallel()
			wantNotReady(t, newRedis(t, clientWithRights(t, rights...), nil), says, advice)
		})
	}
	refuses("NOPERM", "evalsha and eval", "~*", "+@all", "-evalsha")
	refuses("NOPERM", "evalsha and eval", "~*", "+@all", "-eval")
	refuses("NOPERM", "the limiter's prefix", "~other:*", "+@all")
	for _, command := range []string{"get", "set", "time", "lrange", "rpush", "lset", "pexpire", "del"} {
		refuses("The user executing the script", "package lua lists", "~*", "+@all", "-"+command)
	}
	t.Run("no password", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t, "--requirepass", "secret")
		wantNotReady(t, newRedis(t, client(t, server.Addr(), nil), nil), "NOAUTH", "set the client's Password")
	})
	t.Run("wrong password", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t, "--requirepass", "secret")
		c := client(t, server.Addr(), func(o *redis.Options) { o.Password = "wrong" })
		wantNotReady(t, newRedis(t, c, nil), "WRONGPASS", "check the client's Username and Password")
	})
	t.Run("hidden command", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t, "--rename-command", "EVALSHA", "hidden")
		wantNotReady(t, newRedis(t, client(t, server.Addr(), nil), nil), "unknown command", "lacks a command")
	})
}

// Ready needs no more rights than limits do, and leaves nothing behind.
func TestReady(t *testing.T) {
	t.Parallel()
	c := clientWithRights(t, "~rates:*", "+evalsha", "+eval", "+del", "+get", "+incrby", "+lindex", "+llen", "+lrange",
		"+lrem", "+lset", "+ltrim", "+mget", "+pexpire", "+pttl", "+rpush", "+set", "+time")
	r := newRedis(t, c, &algorithms.RedisOptions{Prefix: "rates"})
	for range 3 {
		if err := r.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the keys of Ready have expired", func() bool {
		for key := range algorithms.ProbeKeysForTest() {
			if c.Get(t.Context(), "rates:"+key).Err() != redis.Nil {
				return false
			}
		}
		return true
	})
}

// What passes by itself is no configuration, and comes without advice; also
// that of a server that would answer a ping.
func TestNotReadyForNow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		says string
		want algorithms.ErrorClass
		args []string
	}{
		{"READONLY", algorithms.ErrorFailover, []string{"--replicaof", "127.0.0.1 1"}},
		{"OOM", algorithms.ErrorCapacity, []string{"--maxmemory", "1"}},
		{"NOREPLICAS", algorithms.ErrorUnavailable, []string{"--min-replicas-to-write", "1"}},
	} {
		err := newRedis(t, redistest.Start(t, tt.args...).Client(), nil).Ready(t.Context())
		if got := algorithms.Classify(err); got != tt.want || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "(") {
			t.Errorf("got %v of class %v, want %s of class %v, without advice", err, got, tt.says, tt.want)
		}
	}
	server := redistest.Start(t)
	r := newRedis(t, server.Client(), nil)
	server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := r.Ready(ctx); algorithms.Classify(err) != algorithms.ErrorCancelled {
		t.Errorf("got %v, want the end of the context", err)
	}
}

// A node that holds a range of slots of less than half of all cannot hold all
// keys of Ready.
func TestReadyAsksFarApart(t *testing.T) {
	quarters := make(map[int]bool)
	for _, slot := range algorithms.ProbeKeysForTest() {
		quarters[slot*4/16384] = true
	}
	if len(quarters) != 4 {
		t.Errorf("got keys in %d quarters of the slots, want 4", len(quarters))
	}
}
