// What Ready finds.

package shared

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/internal/redistest"
)

func wantMisconfigured(t *testing.T, l *Limiter, says, advice string) {
	t.Helper()
	err := l.redis.ready(t.Context())
	if !errors.Is(err, ErrMisconfigured) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), advice) {
		t.Errorf("got %v, want a misconfiguration that says %q and %q", err, says, advice)
	}
	if got := Reason(err); got != reasonConfiguration {
		t.Errorf("%v: got reason %q, want %q", err, got, reasonConfiguration)
	}
}

// Ready names whatever is missing, however little that is.
func TestReadyFindsMisconfigurations(t *testing.T) {
	t.Parallel()
	refuses := func(says, advice string, permissions ...string) {
		t.Run(strings.Join(permissions, " "), func(t *testing.T) {
			t.Parallel()
			c := clientWithPermissions(t, redistest.Start(t), permissions...)
			wantMisconfigured(t, newRedis(t, c, nil), says, advice)
		})
	}
	refuses("NOPERM", "EVALSHA and EVAL", "~*", "+@all", "-evalsha")
	refuses("NOPERM", "EVALSHA and EVAL", "~*", "+@all", "-eval")
	refuses("NOPERM", "the limiter's prefix", "~other:*", "+@all")
	for _, command := range []string{"get", "set", "time", "lrange", "rpush", "lset", "pexpire", "del"} {
		refuses("The user executing the script", "package lua lists", "~*", "+@all", "-"+command)
	}
	t.Run("no password", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t, "--requirepass", "secret")
		wantMisconfigured(t, newRedis(t, clientOf(t, server.Addr(), nil), nil), "NOAUTH", "set the client's Password")
	})
	t.Run("wrong password", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t, "--requirepass", "secret")
		c := clientOf(t, server.Addr(), func(o *redis.Options) { o.Password = "wrong" })
		wantMisconfigured(t, newRedis(t, c, nil), "WRONGPASS", "check the client's Username and Password")
	})
	t.Run("hidden command", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t, "--rename-command", "EVALSHA", "hidden")
		wantMisconfigured(t, newRedis(t, clientOf(t, server.Addr(), nil), nil), "unknown command", "lacks a command")
	})
}

// Ready needs no more permissions than limits do, and leaves nothing behind.
func TestReady(t *testing.T) {
	t.Parallel()
	c := clientWithPermissions(t, redistest.Start(t), "~rates:*", "+evalsha", "+eval", "+del", "+get", "+incrby", "+lindex", "+llen",
		"+lrange", "+lrem", "+lset", "+ltrim", "+mget", "+pexpire", "+pttl", "+rpush", "+set", "+time")
	r := newRedis(t, c, &Options{Prefix: "rates"})
	for range 3 {
		if err := r.redis.ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	redistest.Until(t, "the keys of Ready have expired", func() bool {
		for key := range probeKeys() {
			if c.Get(t.Context(), "rates:"+key).Err() != redis.Nil {
				return false
			}
		}
		return true
	})
}

// Trouble that may pass is no misconfiguration, and comes without advice, also
// if the server would answer a ping.
func TestNotReadyForNow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		says string
		want string
		args []string
	}{
		{"READONLY", reasonFailover, []string{"--replicaof", "127.0.0.1 1"}},
		{"OOM", reasonCapacity, []string{"--maxmemory", "1"}},
		{"NOREPLICAS", reasonUnavailable, []string{"--min-replicas-to-write", "1"}},
	} {
		err := newRedis(t, redistest.Start(t, tt.args...).Client(), nil).redis.ready(t.Context())
		if got := Reason(err); got != tt.want || !strings.Contains(err.Error(), tt.says) || errors.Is(err, ErrMisconfigured) || strings.Contains(err.Error(), "(") {
			t.Errorf("got %v with reason %s, want %s with reason %s, without advice", err, got, tt.says, tt.want)
		}
	}
	server := redistest.Start(t)
	r := newRedis(t, server.Client(), nil)
	server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := r.redis.ready(ctx); Reason(err) != reasonCancelled {
		t.Errorf("got %v, want the end of the context", err)
	}
}

// A node that holds less than half of all slots in one range cannot hold all keys
// of Ready.
func TestReadyAsksFarApart(t *testing.T) {
	quarters := make(map[int]bool)
	for _, slot := range probeKeys() {
		quarters[slot*4/clusterSlots] = true
	}
	if len(quarters) != 4 {
		t.Errorf("got keys in %d quarters of the slots, want 4", len(quarters))
	}
}
