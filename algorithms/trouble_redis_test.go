package algorithms_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// client returns a client of a server's, with go-redis's default options but for
// those that set changes.
func client(t *testing.T, addr string, set func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{Addr: addr}
	if set != nil {
		set(o)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// do runs a command that a test depends on.
func do(t *testing.T, c *redis.Client, args ...any) {
	t.Helper()
	if err := c.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

// patience is how long tests wait for what should happen: so long that a busy
// machine is no reason for it not to.
const patience = time.Minute

// await polls until ok holds.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%v have passed, and still not: %s", patience, what)
		}
	}
}

func pingSays(t *testing.T, c *redis.Client, prefix string) {
	t.Helper()
	await(t, prefix, func() bool { return redis.HasErrorPrefix(c.Ping(t.Context()).Err(), prefix) })
}

var aLimit = algorithms.FixedWindow(100, 24*time.Hour)

// ask takes a unit of each key in one call, and returns its error.
func ask(t *testing.T, c algorithms.Client, keys ...string) error {
	t.Helper()
	return askWith(t.Context(), t, c, &algorithms.RedisOptions{Timeout: 10 * time.Second}, keys...)
}

func askWith(ctx context.Context, t *testing.T, c algorithms.Client, o *algorithms.RedisOptions, keys ...string) error {
	t.Helper()
	checks := make([]algorithms.Check, 0, len(keys))
	for _, key := range keys {
		checks = append(checks, algorithms.Check{Policy: algorithms.DefaultPolicy, Key: key, Limit: aLimit, Cost: 1})
	}
	return newRedis(t, c, o).Allow(ctx, checks)
}

// instead sends another command for each that it is given: what Redis would
// say if the script did that.
type instead struct {
	algorithms.Client
	args []any
}

func (i instead) Process(ctx context.Context, cmd redis.Cmder) error {
	other := redis.NewCmd(ctx, i.args...)
	err := i.Client.Process(ctx, other)
	cmd.SetErr(err)
	if c, ok := cmd.(interface{ SetVal(any) }); ok {
		c.SetVal(other.Val())
	}
	return err
}

func script(c algorithms.Client, body string) algorithms.Client {
	return instead{c, []any{"eval", body, 1, "k"}}
}

// Every row that a server of this version can produce, as callers of a limiter
// with go-redis's default options meet it.
func TestTroublesOfARealServer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		produce func(*testing.T) error
		says    string // part of the error's text
		want    string
	}{
		{"refused", func(t *testing.T) error {
			server := redistest.Start(t)
			server.Kill()
			return ask(t, client(t, server.Addr(), nil), "usr=1")
		}, "connection refused", "unavailable failure"},
		{"dial timeout", func(t *testing.T) error {
			return ask(t, client(t, "127.0.0.1:1", func(o *redis.Options) {
				o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
					ctx, cancel := context.WithTimeout(ctx, time.Nanosecond)
					defer cancel()
					return new(net.Dialer).DialContext(ctx, network, addr)
				}
			}), "usr=1")
		}, "dial tcp", "unavailable failure"},
		{"no answer", func(t *testing.T) error {
			server := redistest.Start(t)
			c := client(t, server.Addr(), nil)
			do(t, c, "ping")
			server.Stop()
			return askWith(t.Context(), t, c, &algorithms.RedisOptions{Timeout: 50 * time.Millisecond}, "usr=1")
		}, "no answer within", "timeout failure executed"},
		{"no answer to a new connection", func(t *testing.T) error {
			server := redistest.Start(t)
			server.Stop()
			return askWith(t.Context(), t, client(t, server.Addr(), nil), &algorithms.RedisOptions{Timeout: 50 * time.Millisecond}, "usr=1")
		}, "not sent within", "timeout failure"},
		{"read timeout", func(t *testing.T) error {
			server := redistest.Start(t)
			c := client(t, server.Addr(), func(o *redis.Options) { o.ReadTimeout = 200 * time.Millisecond })
			do(t, c, "ping")
			server.Stop()
			return ask(t, c, "usr=1")
		}, "i/o timeout", "timeout failure executed"},
		{"read timeout of a new connection", func(t *testing.T) error {
			server := redistest.Start(t)
			server.Stop()
			return ask(t, client(t, server.Addr(), func(o *redis.Options) { o.ReadTimeout = 200 * time.Millisecond }), "usr=1")
		}, "i/o timeout", "timeout failure executed"},
		{"connection killed while waiting", killed, "EOF", unforeseen},
		{"caller hung up", func(t *testing.T) error {
			server := redistest.Start(t)
			server.Stop()
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			return askWith(ctx, t, client(t, server.Addr(), nil), nil, "usr=1")
		}, "context canceled", "cancelled none executed"},
		{"caller's deadline", func(t *testing.T) error {
			server := redistest.Start(t)
			server.Stop()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			return askWith(ctx, t, client(t, server.Addr(), nil), nil, "usr=1")
		}, "context deadline exceeded", "cancelled none executed"},
		{"no free connection", func(t *testing.T) error {
			c := client(t, redistest.Start(t).Addr(), func(o *redis.Options) { o.PoolSize, o.PoolTimeout = 1, 20*time.Millisecond })
			occupy(t, c)
			return ask(t, c, "usr=1")
		}, "connection pool timeout", "overload failure"},
		{"no more connections", func(t *testing.T) error {
			c := client(t, redistest.Start(t).Addr(), func(o *redis.Options) { o.MaxActiveConns = 1 })
			occupy(t, c)
			return ask(t, c, "usr=1")
		}, "connection pool exhausted", "overload failure"},
		{"closed client", func(t *testing.T) error {
			c := client(t, redistest.Start(t).Addr(), nil)
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			return ask(t, c, "usr=1")
		}, "client is closed", "internal none"},
		{"LOADING", loading, "LOADING", "unavailable failure"},
		{"READONLY", func(t *testing.T) error {
			return ask(t, redistest.Start(t, "--replicaof", "127.0.0.1 1").Client(), "usr=1")
		}, "READONLY", "failover failure retry"},
		{"MASTERDOWN", func(t *testing.T) error {
			c := redistest.Start(t, "--replicaof", "127.0.0.1 1").Client()
			do(t, c, "config", "set", "replica-serve-stale-data", "no")
			return ask(t, c, "usr=1")
		}, "MASTERDOWN", "failover failure"},
		{"OOM", func(t *testing.T) error {
			return ask(t, redistest.Start(t, "--maxmemory", "1", "--maxmemory-policy", "noeviction").Client(), "usr=1")
		}, "OOM", "capacity failure"},
		{"too many connections", tooManyConnections, "max number of clients", "capacity failure"},
		{"MISCONF", misconf, "MISCONF", "unavailable failure"},
		{"NOREPLICAS", func(t *testing.T) error {
			return ask(t, redistest.Start(t, "--min-replicas-to-write", "1").Client(), "usr=1")
		}, "NOREPLICAS", "unavailable failure"},
		{"BUSY", busy, "BUSY", "unavailable failure"},
		{"script killed", scriptKilled, "Script killed by user", "unavailable failure"},
		{"unknown digest", func(t *testing.T) error {
			c := redistest.Start(t).Client()
			return c.EvalSha(t.Context(), strings.Repeat("0", 40), nil).Err()
		}, "NOSCRIPT", "internal success retry"},
		{"NOAUTH", func(t *testing.T) error {
			return ask(t, client(t, redistest.Start(t, "--requirepass", "secret").Addr(), nil), "usr=1")
		}, "NOAUTH", "configuration failure"},
		{"WRONGPASS", func(t *testing.T) error {
			return ask(t, client(t, redistest.Start(t, "--requirepass", "secret").Addr(), func(o *redis.Options) { o.Password = "wrong" }), "usr=1")
		}, "WRONGPASS", "configuration failure"},
		{"NOPERM for the key", withRights("+@all", "~other:*"), "NOPERM", "configuration failure"},
		{"NOPERM for the command", withRights("+@all", "-evalsha", "~*"), "NOPERM", "configuration failure"},
		{"NOPERM for loading", withRights("+@all", "-eval", "~*"), "NOPERM", "configuration failure"},
		{"no right to read in the script", withRights("+@all", "-get", "-mget", "~*"), "The user executing the script", "configuration failure executed"},
		{"no right to write in the script", withRights("+@all", "-set", "~*"), "The user executing the script", "configuration failure executed"},
		{"no right to the time in the script", withRights("+@all", "-time", "~*"), "The user executing the script", "configuration failure executed"},
		{"EVALSHA renamed", func(t *testing.T) error {
			return ask(t, redistest.Start(t, "--rename-command", "EVALSHA", "hidden").Client(), "usr=1")
		}, "unknown command", "configuration failure"},
		{"SET renamed", func(t *testing.T) error {
			return ask(t, redistest.Start(t, "--rename-command", "SET", "hidden").Client(), "usr=1")
		}, "Unknown Redis command", "configuration failure executed"},
		{"stored key of another type", func(t *testing.T) error {
			c := redistest.Start(t).Client()
			do(t, c, "hset", "penstock:{usr=1}:default:fw", "field", "value")
			return ask(t, c, "usr=1")
		}, "WRONGTYPE", "key success"},
		{"wrong type in the script", func(t *testing.T) error {
			return ask(t, script(redistest.Start(t).Client(), "redis.call('SET', KEYS[1], 'x') redis.call('LLEN', KEYS[1])"), "usr=1")
		}, "WRONGTYPE", "key success executed"},
		{"no integer in the script", func(t *testing.T) error {
			return ask(t, script(redistest.Start(t).Client(), "redis.call('SET', KEYS[1], 'x') redis.call('INCR', KEYS[1])"), "usr=1")
		}, "not an integer", "key success executed"},
		{"overflow in the script", func(t *testing.T) error {
			return ask(t, script(redistest.Start(t).Client(), "redis.call('SET', KEYS[1], '9223372036854775807') redis.call('INCR', KEYS[1])"), "usr=1")
		}, "would overflow", "key success executed"},
		{"Lua error", func(t *testing.T) error {
			return ask(t, script(redistest.Start(t).Client(), "return nil + 1"), "usr=1")
		}, "user_script:1: attempt to", "internal success executed"},
		{"script does not compile", func(t *testing.T) error {
			return ask(t, script(redistest.Start(t).Client(), "return return"), "usr=1")
		}, "Error compiling script", "internal success"},
		{"nothing for a reply", func(t *testing.T) error {
			return ask(t, script(redistest.Start(t).Client(), "return nil"), "usr=1")
		}, "redis: nil", "internal success executed"},
		{"number for a reply", func(t *testing.T) error {
			return ask(t, script(redistest.Start(t).Client(), "return 1"), "usr=1")
		}, "unexpected type", "internal success executed"},
		{"list for a reply", func(t *testing.T) error {
			return ask(t, script(redistest.Start(t).Client(), "return {'?'}"), "usr=1")
		}, "not the script's", "internal success executed"},
		{"cluster without slots", func(t *testing.T) error {
			return ask(t, redistest.Start(t, "--cluster-enabled", "yes").Client(), "usr=1")
		}, "CLUSTERDOWN", "unavailable failure"},
		{"invalid check", func(t *testing.T) error { return ask(t, redistest.Start(t).Client(), "") }, "the key is empty", "internal none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.produce(t)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("got %v, want an error that says %q", err, tt.says)
			}
			if got := algorithms.TroubleForTest(err); got != tt.want {
				t.Errorf("%v: got %q, want %q", err, got, tt.want)
			}
		})
	}
}

// occupy takes the client's only connection.
func occupy(t *testing.T, c *redis.Client) {
	t.Helper()
	conn := c.Conn()
	if err := conn.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
}

// killed cuts the connection of a script that waits for a paused server.
func killed(t *testing.T) error {
	server := redistest.Start(t)
	admin := server.Client()
	do(t, admin, "client", "pause", "10000", "write")
	failed := make(chan error, 1)
	c := client(t, server.Addr(), nil)
	go func() { failed <- ask(t, c, "usr=1") }()
	var id string
	await(t, "a script waits", func() bool {
		for line := range strings.Lines(admin.ClientList(t.Context()).Val()) {
			if strings.Contains(line, "cmd=evalsha") {
				id, _, _ = strings.Cut(strings.TrimPrefix(line, "id="), " ")
			}
		}
		return id != ""
	})
	do(t, admin, "client", "kill", "id", id)
	return <-failed
}

// loading asks while a server loads its data, slowly.
func loading(t *testing.T) error {
	server := redistest.Start(t, "--enable-debug-command", "yes")
	admin := client(t, server.Addr(), func(o *redis.Options) { o.MaxRetries = -1 })
	do(t, admin, "debug", "populate", "1000", "key", "2000")
	do(t, admin, "config", "set", "key-load-delay", "10000", "loading-process-events-interval-bytes", "1024")
	go admin.Do(t.Context(), "debug", "reload") // until the server is killed
	watch := client(t, server.Addr(), func(o *redis.Options) { o.MaxRetries = -1 })
	pingSays(t, watch, "LOADING")
	return ask(t, client(t, server.Addr(), nil), "usr=1")
}

// tooManyConnections asks a server that takes one connection, and has it. The
// client may find its own cut before it has read why, and then only knows that.
func tooManyConnections(t *testing.T) error {
	server := redistest.Start(t, "--maxclients", "1")
	do(t, server.Client(), "ping")
	err := ask(t, client(t, server.Addr(), nil), "usr=1")
	if got := algorithms.TroubleForTest(err); got != "capacity failure" && got != unforeseen {
		t.Errorf("%v: got %q, want that of a cut connection at least", err, got)
	}
	conn, err := net.Dial("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reply, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return said(strings.TrimPrefix(string(reply), "-"))
}

// misconf asks a server that could not save its data.
func misconf(t *testing.T) error {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c := redistest.Start(t, "--dir", dir, "--save", "3600 1").Client()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	do(t, c, "bgsave")
	await(t, "saving has failed", func() bool {
		return strings.Contains(c.Info(t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err")
	})
	return ask(t, c, "usr=1")
}

// busy asks a server that runs somebody's endless script.
func busy(t *testing.T) error {
	server := redistest.Start(t, "--busy-reply-threshold", "1")
	endless(t, server)
	pingSays(t, client(t, server.Addr(), nil), "BUSY")
	return ask(t, client(t, server.Addr(), nil), "usr=1")
}

func scriptKilled(t *testing.T) error {
	server := redistest.Start(t, "--busy-reply-threshold", "1")
	failed := make(chan error, 1)
	c := script(client(t, server.Addr(), nil), "while true do end")
	go func() { failed <- ask(t, c, "usr=1") }()
	admin := client(t, server.Addr(), nil)
	pingSays(t, admin, "BUSY")
	do(t, admin, "script", "kill")
	return <-failed
}

// endless runs a script until the server is killed.
func endless(t *testing.T, server *redistest.Server) {
	t.Helper()
	c := client(t, server.Addr(), func(o *redis.Options) { o.MaxRetries = -1 })
	go c.Eval(t.Context(), "while true do end", nil)
}

// withRights asks as a user with those rights.
func withRights(rights ...string) func(*testing.T) error {
	return func(t *testing.T) error { return ask(t, clientWithRights(t, rights...), "usr=1") }
}

func clientWithRights(t *testing.T, rights ...string) *redis.Client {
	t.Helper()
	server := redistest.Start(t)
	args := []any{"acl", "setuser", "limiter", "on", ">secret"}
	for _, right := range rights {
		args = append(args, right)
	}
	do(t, server.Client(), args...)
	return client(t, server.Addr(), func(o *redis.Options) { o.Username, o.Password = "limiter", "secret" })
}

// Observers see the class of every error, and of the limiter's own timeout
// that it was one, whatever the client makes of it.
func TestEventsHaveTheClassOfTheirError(t *testing.T) {
	t.Parallel()
	var seen events
	o := &algorithms.RedisOptions{Observe: seen.add}
	if err := askWith(t.Context(), t, redistest.Start(t, "--maxmemory", "1").Client(), o, "usr=1"); err == nil {
		t.Fatal("a full server made a decision")
	}
	o.Timeout = time.Millisecond
	if err := askWith(t.Context(), t, endsWithContext{}, o, "usr=1"); err == nil {
		t.Fatal("a client that ends with its context made a decision")
	}
	await(t, "three events", func() bool { return len(seen.all()) == 3 })
	want := []algorithms.Event{
		{Kind: algorithms.EventScriptLoaded, Class: algorithms.ErrorNone},
		{Kind: algorithms.EventError, Class: algorithms.ErrorCapacity},
		{Kind: algorithms.EventError, Class: algorithms.ErrorTimeout},
	}
	for i, got := range seen.all() {
		if got.Kind != want[i].Kind || got.Class != want[i].Class {
			t.Errorf("event %d: got %v of class %v (%v), want %v of class %v", i, got.Kind, got.Class, got.Err, want[i].Kind, want[i].Class)
		}
	}
}

// endsWithContext is a client that waits for a connection until it may not.
type endsWithContext struct{}

func (endsWithContext) Process(ctx context.Context, _ redis.Cmder) error {
	<-ctx.Done()
	return ctx.Err()
}
