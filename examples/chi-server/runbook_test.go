// The test of RUNBOOK's commands, and of the answers to five questions.

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// An incident is the example in trouble: one account sends too much. A Prometheus scrapes it.
type incident struct {
	*server
	redis *redistest.Server
	p     *scraper
	env   []string
	fill  *strings.Replacer // of the placeholders
	log   string            // a file with the server's log

	blocks <-chan struct{} // of a client that blocks Redis; closed when it has gone
	other  *server
}

// newSite returns the example without load and without a Prometheus.
func newSite(t *testing.T, start func(*testing.T, ...string) *server) *incident {
	t.Helper()
	redis := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru") // a finding
	s := start(t, "-redis", "redis://"+redis.Addr(), "-admin-token", token, "-trusted-proxies", "127.0.0.0/8")
	in := &incident{server: s, redis: redis, log: filepath.Join(t.TempDir(), "log")}
	in.env = append(os.Environ(), "CONSOLE="+s.url+"/admin", "TOKEN="+token, "REDIS=redis://"+redis.Addr(), "STATUS="+s.url+"/status")
	in.fill = strings.NewReplacer("ACCOUNT", "merchant-1", "POLICY", "charges-merchant", "LOGFILE", in.log,
		"ADDRESS", "192.0.2.9:9", "USER", "default", "MEMORY", "1gb", "LIMIT", "77/1m",
		"TODAYT14:00:00Z", time.Now().Add(-time.Hour).UTC().Format(time.RFC3339),
		// The day after tomorrow, because tomorrow may begin in a minute.
		"TOMORROW", time.Now().Add(48*time.Hour).UTC().Format("2006-01-02"))
	return in
}

func newIncident(t *testing.T, start func(*testing.T, ...string) *server) *incident {
	t.Helper()
	in := newSite(t, start)
	s := in.server
	in.p = startScraper(t, []scene{{name: "api", url: s.url}})
	in.env = append(in.env, "PROMETHEUS="+in.p.url)
	s.operate(t, "PUT /admin/overrides/orders?key=*", `{"limit":"600/1m"}`, http.StatusNoContent)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // the account uses each unit at once, and others do not
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			s.send(t, "GET /v1/orders/1", "", "X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i%256))
			s.send(t, "POST /v1/charges", "", "X-API-Key", "demo-free")
			time.Sleep(5 * time.Millisecond)
		}
	}()
	t.Cleanup(func() { stop(); <-done })
	return in
}

// run runs a command, and returns its output or what is wrong with it.
func (in *incident) run(t *testing.T, command string) (output, wrong string) {
	t.Helper()
	if err := os.WriteFile(in.log, []byte(in.server.log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", in.fill.Replace(command))
	cmd.Env = in.env
	out, err := cmd.CombinedOutput()
	if bad := regexp.MustCompile(`ERR |NOTBUSY|rror:|"status":|disabled|unknown command`).FindString(string(out)); err != nil || bad != "" {
		return string(out), fmt.Sprintf("$ %s\ngot %v and\n%s", command, err, out)
	}
	return string(out), ""
}

// commandsOf returns the commands of a section of RUNBOOK.
func commandsOf(t *testing.T, anchor string) (commands []string) {
	t.Helper()
	runbook, err := os.ReadFile(filepath.Join("..", "..", "RUNBOOK.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(strings.ToLower(string(runbook)), "\n### "+anchor+"\n")
	if !found {
		t.Fatalf("RUNBOOK has no section %s", anchor)
	}
	section = string(runbook[len(runbook)-len(section):])
	section, _, _ = strings.Cut(section, "\n##")
	for _, command := range regexp.MustCompile(`(?m)^\$ (.*)$`).FindAllStringSubmatch(section, -1) {
		commands = append(commands, command[1])
	}
	return commands
}

// trouble pauses Redis now and then, makes another program block it, and takes a permission away for a moment.
func (in *incident) trouble(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for _, args := range [][]string{
				{"acl", "setuser", "default", "-evalsha"}, nil, {"acl", "setuser", "default", "+evalsha"}, nil,
				{"client", "pause", "1500", "all"}, {"eval", "for i = 1, 1e7 do end", "0"}, nil,
			} {
				if args != nil {
					_ = exec.CommandContext(ctx, "redis-cli", append([]string{"-u", "redis://" + in.redis.Addr()}, args...)...).Run() // an error shows as a missing line
					continue
				}
				select { // requests meet the missing permission, and then the circuit closes
				case <-ctx.Done():
				case <-time.After(2 * time.Second):
				}
			}
		}
	}()
	t.Cleanup(func() { stop(); <-done })
}

// shape returns a line without its figures.
func shape(line string) string {
	return strings.TrimSpace(regexp.MustCompile(`([0-9.]+(ms|µs|s|m)+\b)+|[0-9]+(\.[0-9]+)?`).ReplaceAllString(line, "0"))
}

// TestRunbookCommands: every command of RUNBOOK works, and prints what RUNBOOK shows.
func TestRunbookCommands(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	runbook, err := os.ReadFile(filepath.Join("..", "..", "RUNBOOK.md"))
	if err != nil {
		t.Fatal(err)
	}
	in, commands, console := newIncident(t, startForOutages), 0, false
	in.trouble(t)
	var command string
	var shown []string
	run := func() {
		if command == "" {
			return
		}
		commands++
		if quiet := strings.Contains(command, "candidate_divergences"); len(shown) == 0 && !quiet && regexp.MustCompile(`^(promtool|redis-cli) `).MatchString(command) {
			t.Errorf("RUNBOOK shows no output of %s", command)
		}
		redistest.UntilEmpty(t, "the command of RUNBOOK works", func() string {
			if ban := strings.Replace(command, "/unban", "/ban", 1); ban != command {
				in.run(t, ban) // again, because an earlier try may have lifted it, although Redis did not answer in time
			}
			output, wrong := in.run(t, command)
			lines := make(map[string]bool)
			for line := range strings.Lines(output) {
				lines[shape(line)] = true
			}
			for _, line := range shown {
				if !lines[shape(line)] {
					wrong += fmt.Sprintf("$ %s\ngot\n%s\nwant the line %s\n", command, output, line)
				}
			}
			return wrong
		})
		command, shown = "", nil
	}
	for line := range strings.Lines(string(runbook)) {
		switch shell, ok := strings.CutPrefix(line, "$ "); {
		case strings.HasPrefix(line, "```"):
			run()
			console = strings.HasPrefix(line, "```console")
		case console && ok:
			run()
			command = strings.TrimSpace(shell)
		case console:
			shown = append(shown, line)
		}
	}
	if alerts := strings.Count(read(t, "alerts.yml"), "- alert: "); commands < 3*(alerts-1) {
		t.Errorf("got %d commands for %d alerts, want three for each", commands, alerts)
	}
}

// TestFiveQuestions: the answers of RUNBOOK's first commands are true.
func TestFiveQuestions(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	in := newIncident(t, start)
	get := func(path string) string { return in.operate(t, "GET /admin"+path, "", http.StatusOK) }
	redistest.UntilEmpty(t, "the account is denied", func() string {
		if in.send(t, "POST /v1/charges", "", "X-API-Key", "demo-free").status == http.StatusTooManyRequests {
			return ""
		}
		return "it is admitted"
	})
	redistest.UntilEmpty(t, "Who says so", func() string {
		who := get("/who?usr=merchant-1")
		for _, want := range []string{`charges-merchant denies usr=merchant-1 for `, `"from": "tier",`, `"tier": "free",`, `"limit": "token-bucket 100/1m burst 10",`} {
			if !strings.Contains(who, want) {
				return "no " + want + " in " + who
			}
		}
		if strings.Contains(get("/who?usr=merchant-2"), " denies ") {
			t.Fatal("Who says that another account is denied")
		}
		return ""
	})
	if denied := get("/denied?since=1h"); strings.Count(denied, `"client"`) != 1 || !strings.Contains(denied, `"charges-merchant"`) {
		t.Errorf("got %s, want one denied client", denied)
	}
	if again := get("/denied?since=" + time.Now().Add(time.Hour).UTC().Format(time.RFC3339)); strings.Contains(again, `"client"`) {
		t.Errorf("got %s, want none that is new", again)
	}
	for range 21 { // guesses of the token: ten are refused, and ten denied, which brings a ban
		in.send(t, "GET /admin/policies", "", "Authorization", "Bearer guess", "X-Forwarded-For", "192.0.2.1")
	}
	redistest.UntilEmpty(t, "the overrides and bans", func() string {
		all := get("/overrides")
		for _, want := range []string{"token-bucket 600/1m", `"since"`, `"says": "console denies ip=192.0.2.1 for `} {
			if !strings.Contains(all, want) {
				return "no " + want + " in " + all
			}
		}
		return ""
	})
	in.operate(t, "DELETE /admin/overrides?since=1h", "", http.StatusOK)
	if all := get("/overrides"); strings.Contains(all, `"since"`) || !strings.Contains(all, "192.0.2.1") {
		t.Errorf("got %s, want only the ban by a policy", all)
	}
	in.p.until(t, func() string { // increase() needs a value from before the outage
		if n, _ := strconv.Atoi(in.p.value(t, `count_over_time(ratelimit_requests_total{policy="login", outcome="failed_closed"}[1h])`)); n >= 2 {
			return ""
		}
		return "two scrapes"
	})
	in.redis.Kill()
	refused := 0
	for range 20 {
		if in.send(t, "POST /v1/login", right).status == http.StatusServiceUnavailable {
			refused++
		}
	}
	in.p.until(t, func() string {
		got, _ := strconv.ParseFloat(in.p.value(t, `sum (increase(ratelimit_requests_total{policy="login", outcome="failed_closed"}[1h]))`), 64)
		if got > 0.8*float64(refused) && got < 1.3*float64(refused) && refused > 0 {
			return ""
		}
		return fmt.Sprintf("got %v refused logins, want about %d", got, refused)
	})
}
