// What Ready finds.

package shared

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/lua"
)

// wantMisconfigured wants a fault from Ready, with texts in its cause and in its
// advice. On a busy machine a server may not answer each probe in time, so Ready may
// need a second try.
func wantMisconfigured(t *testing.T, l *Limiter, fault, says, advice string) {
	t.Helper()
	var err error
	var m *Misconfiguration
	redistest.UntilEmpty(t, "Ready finds the fault "+fault, func() string {
		if err = l.redis.ready(t.Context()); errors.As(err, &m) && m.Fault == fault {
			return ""
		}
		return fmt.Sprint("it returns ", err)
	})
	if !strings.Contains(m.Error(), says) || !strings.Contains(m.Advice, advice) {
		t.Errorf("got %v, want the fault %q that says %q and advises %q", err, fault, says, advice)
		return
	}
	if !errors.Is(err, ErrMisconfigured) || Reason(err) != trouble.Configuration || strings.Contains(err.Error(), "probe=") {
		t.Errorf("%v: got reason %q, want ErrMisconfigured, its reason, and no key in its text", err, Reason(err))
	}
}

// luaCommands returns the commands that the script calls, in lower case.
func luaCommands() (names []string) {
	for _, call := range regexp.MustCompile(`call\('([A-Z]+)'`).FindAllStringSubmatch(lua.Source(), -1) {
		names = append(names, strings.ToLower(call[1]))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestReadyKnowsTheCommandsOfTheScript(t *testing.T) {
	var names []string
	for command := range strings.SplitSeq(trouble.ScriptCommands, ";") {
		names = append(names, strings.Fields(command)[0])
	}
	slices.Sort(names)
	if want := luaCommands(); len(want) < 20 || !slices.Equal(names, want) {
		t.Errorf("got commands %v, want those of the script: %v", names, want)
	}
}

// Ready names each command that the user may not run, also if most limits do not
// need it.
func TestReadyFindsMissingPermissions(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client()
	for _, name := range append(luaCommands(), "evalsha", "eval") {
		do(t, admin, "script", "flush") // otherwise eval is not needed
		do(t, admin, "acl", "setuser", "no-"+name, "on", ">secret", "~*", "+@all", "-"+name)
		c := clientOf(t, server.Addr(), func(o *redis.Options) { o.Username, o.Password = "no-"+name, "secret" })
		wantMisconfigured(t, newRedis(t, c, nil), "permission", "'"+name+"'", "+"+name)
	}
	do(t, admin, "acl", "setuser", "other", "on", ">secret", "~other:*", "+@all")
	c := clientOf(t, server.Addr(), func(o *redis.Options) { o.Username, o.Password = "other", "secret" })
	wantMisconfigured(t, newRedis(t, c, nil), "permission", "NOPERM", "the limiter's prefix")
}

// Ready names each command that the server lacks.
func TestReadyFindsMissingCommands(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]string{
		"EVALSHA": "scripting", "EVAL": "scripting",
		"TIME": "command", "SET": "command", "MGET": "command", "LREM": "command", "ZADD": "command",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, "--rename-command", name, "hidden")
			wantMisconfigured(t, newRedis(t, server.Client(), nil), fault, strings.ToLower(name), "limiter needs")
		})
	}
}

func TestReadyFindsMissingPasswords(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--requirepass", "secret")
	wantMisconfigured(t, newRedis(t, clientOf(t, server.Addr(), nil), nil), "password", "NOAUTH", "set the client's Password")
	c := clientOf(t, server.Addr(), func(o *redis.Options) { o.Password = "wrong" })
	wantMisconfigured(t, newRedis(t, c, nil), "login", "WRONGPASS", "check the client's Username and Password")
}

// Ready needs no more permissions than limits do, and leaves nothing behind.
func TestReady(t *testing.T) {
	t.Parallel()
	permissions := append([]string{"~rates:*"}, strings.Fields(trouble.Commands("+"))...)
	for _, server := range []*redistest.Server{redistest.Start(t), redistest.Start(t, "--rename-command", "SCRIPT", "hidden")} {
		c := clientWithPermissions(t, server, permissions...)
		r := newRedis(t, c, &Options{Prefix: "rates"})
		for range 3 {
			if err := r.redis.ready(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		redistest.Until(t, "the keys of Ready have expired", func() bool {
			return server.Client().DBSize(t.Context()).Val() == 0
		})
	}
}

// Ready runs the commands one by one only until Redis has decided once.
func TestReadyExaminesOnce(t *testing.T) {
	t.Parallel()
	c := redistest.Script(redistest.Start(t).Client())
	r := newRedis(t, c, nil)
	for range 3 {
		if err := r.redis.ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.Count("zremrangebyrank"); got != 1 {
		t.Errorf("ran a command outside of the script %d times, want once", got)
	}
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
		{"READONLY", trouble.Failover, []string{"--replicaof", "127.0.0.1", "1"}},
		{"OOM", trouble.Capacity, []string{"--maxmemory", "1"}},
		{"NOREPLICAS", trouble.Unavailable, []string{"--min-replicas-to-write", "1"}},
	} {
		t.Run(tt.says, func(t *testing.T) {
			if tt.says == "NOREPLICAS" {
				redistest.SkipOn(t, "KeyDB", "KeyDB lets scripts write without replicas")
			}
			err := newRedis(t, redistest.Start(t, tt.args...).Client(), nil).redis.ready(t.Context())
			if got := Reason(err); got != tt.want || !strings.Contains(err.Error(), tt.says) || errors.Is(err, ErrMisconfigured) {
				t.Errorf("got %v with reason %s, want %s with reason %s, without advice", err, got, tt.says, tt.want)
			}
		})
	}
	server := redistest.Start(t)
	r := newRedis(t, server.Client(), &Options{Deadline: 2 * patient})
	server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	if err := r.redis.ready(ctx); !errors.Is(err, ctx.Err()) || Reason(err) != trouble.Cancelled || errors.Is(err, ErrMisconfigured) {
		t.Errorf("got %v with reason %s, want the end of the context", err, Reason(err))
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
