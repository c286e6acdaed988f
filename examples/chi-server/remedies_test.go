// The test that each command of RUNBOOK that acts ends the fault that it is for.

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A remedy is a command of RUNBOOK that acts, with the fault that it is for.
type remedy struct {
	command string // a part of it
	begin   func(*testing.T, *incident)
	fault   func(*testing.T, *incident) string // what is wrong; "" if the fault is gone
}

// remedies are in the order of RUNBOOK.
var remedies = []remedy{
	{"-X DELETE", lower, cannotPay},
	{`POLICY","usr":"ACCOUNT"}' "$CONSOLE/ban`, nothing, notBanned},
	{`POLICY","usr":"ACCOUNT"}' "$CONSOLE/unban`, operate("/ban", `{"policy":"charges-merchant","usr":"merchant-1"}`), cannotPay},
	{`*","usr":"ACCOUNT"}' "$CONSOLE/ban`, nothing, notBanned},
	{`*","usr":"ACCOUNT"}' "$CONSOLE/unban`, operate("/ban", `{"policy":"*","usr":"merchant-1"}`), cannotPay},
	{`/grant`, lower, cannotPay},
	{`/reset`, lower, cannotPay},
	{"client unpause", pauseRedis, noLogin}, // RateLimitFailedClosed
	{"client unpause", pauseRedis, isOpen},  // RateLimitDegraded
	{"client kill", blockRedis, isBlocked},
	{"config set maxmemory MEMORY", func(t *testing.T, in *incident) { in.configure(t, "maxmemory", "3mb") }, evicts},
	{"config set maxmemory-policy", func(t *testing.T, in *incident) { in.configure(t, "maxmemory", "1gb") }, func(t *testing.T, in *incident) string {
		return evicts(t, in) + regexp.MustCompile(`"code":"PS201"`).FindString(in.send(t, "GET /status?format=json", "").body)
	}},
	{"-X DELETE", overrideWithoutOne, differ},
	{"acl setuser", func(t *testing.T, in *incident) { (&pair{redis: in.redis}).permit(t, "-") }, isOpen},
	{"config set maxmemory MEMORY", func(t *testing.T, in *incident) { // RateLimitBreakerFlaps
		in.configure(t, "maxmemory-policy", "noeviction")
		in.configure(t, "maxmemory", "1mb")
	}, isOpen},
	{"overrides/POLICY", nothing, func(t *testing.T, in *incident) string {
		return in.denials(t, "POST /v1/charges", "X-API-Key", "demo-free")
	}},
	{"overrides/exports", nothing, func(t *testing.T, in *incident) string { return in.denials(t, "GET /v1/exports") }},
	{"/ban", nothing, notBanned},
	{"overrides/POLICY", nothing, func(t *testing.T, in *incident) string {
		const candidate = `"charges-merchant";q=77;w=60`
		if limit := in.pay(t).header.Get("RateLimit-Policy"); limit != candidate {
			return "the limit is " + limit
		}
		return ""
	}},
}

// acts finds the commands that change anything.
var acts = regexp.MustCompile(` -d '| -X |client (unpause|kill)|config set maxmemory|acl setuser`)

// TestRemedies: each command of RUNBOOK that acts, on the fault that it is for: then the fault is gone.
func TestRemedies(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	runbook, err := os.ReadFile(filepath.Join("..", "..", "RUNBOOK.md"))
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, command := range regexp.MustCompile(`(?m)^\$ (.*)$`).FindAllStringSubmatch(string(runbook), -1) {
		if acts.MatchString(command[1]) {
			commands = append(commands, command[1])
		}
	}
	if len(commands) != len(remedies) {
		t.Fatalf("got %d commands that act, and %d faults for them", len(commands), len(remedies))
	}
	for i, r := range remedies {
		t.Run(strconv.Itoa(i)+" "+r.command, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(commands[i], r.command) {
				t.Fatalf("got %s, want %s", commands[i], r.command)
			}
			in := newSite(t, startForOutages)
			r.begin(t, in)
			redistest.Until(t, "the fault is there", func() bool { return r.fault(t, in) != "" })
			if output, wrong := in.run(t, commands[i]); wrong != "" {
				t.Fatalf("got %s%s", output, wrong)
			}
			redistest.UntilEmpty(t, commands[i]+" has helped", func() string { return r.fault(t, in) })
		})
	}
}

func nothing(*testing.T, *incident) {}

func operate(path, body string) func(*testing.T, *incident) {
	return func(t *testing.T, in *incident) { in.operate(t, "POST /admin"+path, body, http.StatusNoContent) }
}

// lower lets an operator set a limit that is far too low.
func lower(t *testing.T, in *incident) {
	in.operate(t, "PUT /admin/overrides/charges-merchant?key=*", `{"limit":"5/24h"}`, http.StatusNoContent)
}

func (in *incident) pay(t *testing.T) reply {
	return in.send(t, "POST /v1/charges", "", "X-API-Key", "demo-free")
}

func cannotPay(t *testing.T, in *incident) string {
	if r := in.pay(t); r.status != http.StatusOK {
		return fmt.Sprintf("got %d and %s", r.status, r.body)
	}
	return ""
}

// notBanned reports an account that is denied neither for ever nor for more than an hour.
func notBanned(t *testing.T, in *incident) string {
	r := in.pay(t)
	if seconds, err := strconv.Atoi(r.header.Get("Retry-After")); r.status == http.StatusForbidden || err == nil && seconds > 3_600 {
		return ""
	}
	return fmt.Sprintf("got %d and %v", r.status, r.header)
}

// denials sends many requests at once.
func (in *incident) denials(t *testing.T, line string, fields ...string) string {
	for range 50 {
		if r := in.send(t, line, "", fields...); r.status != http.StatusOK {
			return fmt.Sprintf("got %d and %s", r.status, r.body)
		}
	}
	return ""
}

// pauseRedis pauses writes. A pause of all commands would hold up the remedy, too.
func pauseRedis(t *testing.T, in *incident) {
	if err := in.redis.Client().Do(t.Context(), "client", "pause", time.Hour.Milliseconds(), "write").Err(); err != nil {
		t.Fatal(err)
	}
}

func noLogin(t *testing.T, in *incident) string {
	if r := in.send(t, "POST /v1/login", right); r.status != http.StatusOK {
		return fmt.Sprintf("got %d and %s", r.status, r.body)
	}
	return ""
}

func isOpen(t *testing.T, in *incident) string {
	in.charge(t)
	return regexp.MustCompile(`ratelimit_breaker_open.* 1`).FindString(in.send(t, "GET /metrics", "").body)
}

// blockRedis starts another client, which blocks Redis most of the time.
func blockRedis(t *testing.T, in *incident) {
	conn, err := net.Dial("tcp", in.redis.Addr())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for reply := make([]byte, 100); ; {
			_, err := conn.Write([]byte("EVAL \"local t = redis.call('time') repeat local n = redis.call('time') until (n[1] - t[1]) * 1000000 + n[2] - t[2] > 100000\" 0\r\n"))
			if _, unread := conn.Read(reply); err != nil || unread != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	in.blocks, in.fill = done, strings.NewReplacer("ADDRESS", conn.LocalAddr().String())
}

func isBlocked(t *testing.T, in *incident) string {
	select {
	case <-in.blocks:
		return isOpen(t, in)
	default:
		in.charge(t)
		return "the other client blocks Redis"
	}
}

func (in *incident) configure(t *testing.T, name, value string) {
	if err := in.redis.Client().ConfigSet(t.Context(), name, value).Err(); err != nil {
		t.Fatal(err)
	}
}

// evicts writes 10 000 keys, and reports missing ones.
func evicts(t *testing.T, in *incident) string {
	client := in.redis.Client()
	err := client.Eval(t.Context(), "for i = 1, 10000 do redis.call('set', ARGV[1] .. i, string.rep('x', 100)) end return 1", nil, "key").Err()
	if err != nil {
		t.Fatalf("got %v, want that Redis writes", err)
	}
	if n, err := client.DBSize(t.Context()).Result(); n < 10_000 || err != nil {
		return fmt.Sprintf("got %d keys and %v, want all 10 000", n, err)
	}
	return ""
}

// overrideWithoutOne sets an override that one of two instances does not read.
func overrideWithoutOne(t *testing.T, in *incident) {
	proxy := redistest.StartProxy(t, in.redis.Addr())
	in.other = startForOutages(t, "-redis", "redis://"+proxy.Addr())
	proxy.Set(redistest.Refuse())
	lower(t, in)
}

func differ(t *testing.T, in *incident) string {
	one := in.pay(t).header.Get("RateLimit-Policy")
	if two := (&incident{server: in.other}).pay(t).header.Get("RateLimit-Policy"); one != two {
		return one + " and " + two
	}
	return ""
}
