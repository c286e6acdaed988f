// Every row of the table that a real server can produce, as callers with
// go-redis's default options meet it.

package shared

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/redistest"
)

var perDay = algorithms.FixedWindow(100, 24*time.Hour)

// ask takes a unit of each key in one call, and returns its error.
func ask(t *testing.T, c Client, keys ...string) error {
	t.Helper()
	return newRedis(t, c, &Options{Deadline: 10 * time.Second}).Allow(t.Context(), checksFor(perDay, keys...))
}

// A mishap makes a call fail.
type mishap struct {
	name    string
	produce func(*testing.T) error
	says    string // part of the error's text
	want    string
}

func testMishaps(t *testing.T, all []mishap) {
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			wantTrouble(t, m.produce(t), m.says, m.want)
		})
	}
}

// askServer asks a server that runs with some arguments.
func askServer(args ...string) func(*testing.T) error {
	return func(t *testing.T) error { return ask(t, clientOf(t, redistest.Start(t, args...).Addr(), nil), "usr=1") }
}

// askThrough asks through a client that set makes.
func askThrough(set func(*redis.Options)) func(*testing.T) error {
	return func(t *testing.T) error { return ask(t, clientOf(t, redistest.Start(t).Addr(), set), "usr=1") }
}

// askScript asks a server that runs another script.
func askScript(body string) func(*testing.T) error {
	return func(t *testing.T) error {
		return ask(t, redistest.Script(redistest.Start(t).Client(), redistest.Send("eval", body, 1, "k")), "usr=1")
	}
}

// askWith asks as a user that has some permissions.
func askWith(permissions ...string) func(*testing.T) error {
	return func(t *testing.T) error {
		return ask(t, clientWithPermissions(t, redistest.Start(t), permissions...), "usr=1")
	}
}

func TestTroublesOfConnections(t *testing.T) {
	t.Parallel()
	testMishaps(t, []mishap{
		{"refused", func(t *testing.T) error {
			server := redistest.Start(t)
			server.Kill()
			return ask(t, clientOf(t, server.Addr(), nil), "usr=1")
		}, "connection refused", "unavailable failure"},
		{"dial timeout", askThrough(func(o *redis.Options) {
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				ctx, cancel := context.WithTimeout(ctx, time.Nanosecond)
				defer cancel()
				return new(net.Dialer).DialContext(ctx, network, addr)
			}
		}), "dial tcp", "unavailable failure"},
		{"connection killed while waiting", killed, "EOF", unforeseenText},
		{"no free connection", func(t *testing.T) error {
			c := clientOf(t, redistest.Start(t).Addr(), func(o *redis.Options) { o.PoolSize, o.PoolTimeout = 1, 20*time.Millisecond })
			occupy(t, c)
			return ask(t, c, "usr=1")
		}, "connection pool timeout", "overload failure"},
		{"no more connections", func(t *testing.T) error {
			c := clientOf(t, redistest.Start(t).Addr(), func(o *redis.Options) { o.MaxActiveConns = 1 })
			occupy(t, c)
			return ask(t, c, "usr=1")
		}, "connection pool exhausted", "overload failure"},
		{"closed client", func(t *testing.T) error {
			c := clientOf(t, redistest.Start(t).Addr(), nil)
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			return ask(t, c, "usr=1")
		}, "client is closed", "configuration failure"},
		{"too many connections", tooManyConnections, "max number of clients", "capacity failure"},
	})
}

// patient is so long that a busy machine sends a request, and answers a PING, before it ends.
const patient = time.Second

func TestTroublesOfWaits(t *testing.T) {
	t.Parallel()
	testMishaps(t, []mishap{
		{"no answer", func(t *testing.T) error {
			server := redistest.Start(t)
			c := clientOf(t, server.Addr(), nil)
			do(t, c, "ping")
			server.Stop()
			return newRedis(t, struct{ *redis.Client }{c}, &Options{Deadline: patient}).Allow(t.Context(), checksFor(perDay, "usr=1"))
		}, "no answer within", "timeout failure executed"},
		{"no answer to a new connection", func(t *testing.T) error {
			server := redistest.Start(t)
			server.Stop()
			c := clientOf(t, server.Addr(), nil)
			return newRedis(t, c, &Options{Deadline: patient}).Allow(t.Context(), checksFor(perDay, "usr=1"))
		}, "not sent within", "timeout failure"},
		{"read timeout", func(t *testing.T) error {
			server := redistest.Start(t)
			c := clientOf(t, server.Addr(), func(o *redis.Options) { o.ReadTimeout = patient })
			do(t, c, "ping")
			server.Stop()
			return ask(t, struct{ *redis.Client }{c}, "usr=1") // it keeps its own timeouts
		}, "i/o timeout", "timeout failure executed"},
		{"read timeout of a new connection", func(t *testing.T) error {
			server := redistest.Start(t)
			server.Stop()
			c := clientOf(t, server.Addr(), func(o *redis.Options) { o.ReadTimeout = patient })
			return ask(t, struct{ *redis.Client }{c}, "usr=1")
		}, "i/o timeout", "timeout failure executed"},
	})
}

func TestTroublesOfServers(t *testing.T) {
	t.Parallel()
	testMishaps(t, []mishap{
		{"LOADING", inState((*redistest.Server).RestartLoading), "LOADING", "unavailable failure"},
		{"READONLY", askServer("--replicaof", "127.0.0.1", "1"), "READONLY", "failover failure retry"},
		{"MASTERDOWN", askServer("--replicaof", "127.0.0.1", "1", "--replica-serve-stale-data", "no"), "MASTERDOWN", "failover failure"},
		{"OOM", askServer("--maxmemory", "1", "--maxmemory-policy", "noeviction"), "OOM", "capacity failure"},
		{"MISCONF", inState((*redistest.Server).BreakSaves), "MISCONF", "unavailable failure"},
		{"NOREPLICAS", func(t *testing.T) error {
			redistest.SkipOn(t, "KeyDB", "KeyDB lets scripts write without replicas")
			return askServer("--min-replicas-to-write", "1")(t)
		}, "NOREPLICAS", "unavailable failure"},
		{"BUSY", inState((*redistest.Server).StartScript), "BUSY", "unavailable failure"},
		{"script killed", scriptKilled, "Script killed by user", "unavailable failure"},
		{"unknown digest", func(t *testing.T) error {
			return redistest.Start(t).Client().EvalSha(t.Context(), strings.Repeat("0", 40), nil).Err()
		}, "NOSCRIPT", "internal success retry"},
		{"NOAUTH", askServer("--requirepass", "secret"), "NOAUTH", "configuration failure"},
		{"WRONGPASS", func(t *testing.T) error {
			server := redistest.Start(t, "--requirepass", "secret")
			return ask(t, clientOf(t, server.Addr(), func(o *redis.Options) { o.Password = "wrong" }), "usr=1")
		}, "WRONGPASS", "configuration failure"},
		{"NOPERM for the key", askWith("+@all", "~other:*"), "NOPERM", "configuration failure"},
		{"NOPERM for the command", askWith("+@all", "-evalsha", "~*"), "NOPERM", "configuration failure"},
		{"NOPERM for loading", askWith("+@all", "-eval", "~*"), "NOPERM", "configuration failure"},
		{"no permission to read in the script", askWith("+@all", "-get", "-mget", "~*"), "script", "configuration failure executed"},
		{"no permission to write in the script", askWith("+@all", "-set", "~*"), "script", "configuration failure executed"},
		{"no permission for the time in the script", askWith("+@all", "-time", "~*"), "script", "configuration failure executed"},
		{"EVAL renamed", askServer("--rename-command", "EVAL", "hidden"), "unknown command", "configuration failure"},
		{"EVALSHA renamed", askServer("--rename-command", "EVALSHA", "hidden"), "unknown command", "configuration failure"},
		{"SET renamed", askServer("--rename-command", "SET", "hidden"), "command called from", "configuration failure executed"},
		{"another server than a Cluster", func(t *testing.T) error {
			c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{redistest.Start(t).Addr()}})
			t.Cleanup(func() { _ = c.Close() })
			return ask(t, c, "usr=1")
		}, "cluster support disabled", "configuration failure"},
		{"cluster without slots", askServer("--cluster-enabled", "yes"), "CLUSTERDOWN", "unavailable failure"},
	})
}

func TestTroublesOfScripts(t *testing.T) {
	t.Parallel()
	testMishaps(t, []mishap{
		{"stored key of another type", func(t *testing.T) error {
			c := redistest.Start(t).Client()
			do(t, c, "hset", "penstock:{usr=1}:default:fw", "field", "value")
			return ask(t, c, "usr=1")
		}, "WRONGTYPE", "key success"},
		{"wrong type", askScript("redis.call('SET', KEYS[1], 'x') redis.call('LLEN', KEYS[1])"), "WRONGTYPE", "key success executed"},
		{"no integer", askScript("redis.call('SET', KEYS[1], 'x') redis.call('INCR', KEYS[1])"), "not an integer", "key success executed"},
		{"overflow", askScript("redis.call('SET', KEYS[1], '9223372036854775807') redis.call('INCR', KEYS[1])"), "would overflow", "key success executed"},
		{"Lua error", askScript("return nil + 1"), "user_script:1: attempt to", "internal success executed"},
		{"it does not compile", askScript("return return"), "Error compiling script", "internal success"},
		{"nothing for a reply", askScript("return nil"), "redis: nil", "internal success executed"},
		{"number for a reply", askScript("return 1"), "is not the script's", "internal success executed"},
		{"list for a reply", askScript("return {'?'}"), "not the script's", "internal success executed"},
		{"invalid check", func(t *testing.T) error { return ask(t, redistest.Start(t).Client(), "") }, "the key is empty", "internal none"},
	})
}

// inState asks a server after it was brought into a state.
func inState(bring func(*redistest.Server)) func(*testing.T) error {
	return func(t *testing.T) error {
		server := redistest.Start(t)
		bring(server)
		return ask(t, clientOf(t, server.Addr(), nil), "usr=1")
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
	c := clientOf(t, server.Addr(), nil)
	go func() { failed <- ask(t, c, "usr=1") }()
	var id string
	redistest.Until(t, "a script waits", func() bool {
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

// tooManyConnections asks a server that accepts one connection, and has it. The
// client may find its own connection cut before it has read why.
func tooManyConnections(t *testing.T) error {
	server := redistest.Start(t, "--maxclients", "1")
	do(t, server.Client(), "ping")
	err := ask(t, clientOf(t, server.Addr(), nil), "usr=1")
	if got := troubleText(err); got != "capacity failure" && got != unforeseenText {
		t.Errorf("%v: got %q, want a cut connection's at least", err, got)
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
	return trouble.ScriptError(strings.TrimPrefix(string(reply), "-"))
}

func scriptKilled(t *testing.T) error {
	server := redistest.Start(t, "--lua-time-limit", "1")
	failed := make(chan error, 1)
	c := redistest.Script(clientOf(t, server.Addr(), nil), redistest.Send("eval", "while true do end", 1, "k"))
	go func() { failed <- ask(t, c, "usr=1") }()
	admin := clientOf(t, server.Addr(), nil)
	redistest.Until(t, "the server is busy", func() bool { return redis.HasErrorPrefix(admin.Ping(t.Context()).Err(), "BUSY") })
	do(t, admin, "script", "kill")
	return <-failed
}
