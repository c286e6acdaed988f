// Tests of the server without Redis: at start, later, and after a misconfiguration.

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

const (
	gone   = `level=ERROR msg="ratelimit: Redis unavailable"`
	back   = `level=INFO msg="ratelimit: Redis available"`
	first  = `level=WARN msg="ratelimit: Redis failure"`
	closed = `level=WARN msg="ratelimit: fail-closed refusal" policy=login`
	odd    = `level=ERROR msg="ratelimit: Redis misconfigured"`
)

// wantDegraded wants logins refused. This instance decides all other requests, and sends their numbers.
func wantDegraded(t *testing.T, s *server) {
	t.Helper()
	tests := []struct {
		line, key, policy string
		status            int
	}{
		{"POST /v1/login", "", "", http.StatusServiceUnavailable},
		{"GET /v1/orders/1", "demo-free", "orders", http.StatusOK},
		{"GET /v1/search", "", "search", http.StatusOK},
		{"GET /v1/reports", "", "reports", http.StatusOK},
		{"POST /v1/sms", "", "sms", http.StatusOK},
		{"POST /v1/charges", "demo-pro", "charges-merchant", http.StatusOK},
		{"POST /v1/charges", "", "", http.StatusUnauthorized},
		{"GET /nothing", "", "unmatched", http.StatusNotFound},
		{"GET /healthz", "", "", http.StatusOK},
	}
	for _, tt := range tests {
		var fields []string
		if tt.key != "" {
			fields = []string{"X-API-Key", tt.key}
		}
		r := s.send(t, tt.line, right, fields...)
		if r.status != tt.status {
			t.Errorf("%s: got %d, want %d", tt.line, r.status, tt.status)
		}
		if tt.policy != "" && (!strings.HasPrefix(r.header.Get("RateLimit"), fmt.Sprintf("%q;r=", tt.policy)) || r.left() < 0) {
			t.Errorf("%s: got %v, want the numbers of %q", tt.line, r.header, tt.policy)
		}
		if retry := r.header.Get("Retry-After"); (retry != "") != (tt.status == http.StatusServiceUnavailable) {
			t.Errorf("%s: got %d and Retry-After %q, want it with 503 only", tt.line, r.status, retry)
		}
	}
}

// TestOutageLog: by their times, the lines have the cause before the effect. Each line of the limiter begins alike, and
// the last one counts.
func TestOutageLog(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	s := startForOutages(t, "-redis", "redis://"+redis.Addr())
	redis.Kill()
	s.send(t, "POST /v1/login", right)
	s.chargeUntil(t, gone, 1)
	redis.Restart()
	s.chargeUntil(t, back, 1)
	log := s.log.String()
	before := ""
	for _, line := range []string{first, closed, gone, back} {
		found := regexp.MustCompile(`(?m)^time=(\S+) ` + line).FindStringSubmatch(log)
		if found == nil || found[1] < before {
			t.Errorf("got %q, want %q at %s or later, in\n%s", found, line, before, log)
			continue
		}
		before = found[1]
	}
	for line := range strings.Lines(log) {
		if strings.Contains(line, "level=INFO msg=listening") {
			continue // of the program
		}
		if !strings.Contains(line, ` msg="ratelimit: `) {
			t.Errorf("got %q, want the prefix of the limiter", line)
		}
	}
	counts := regexp.MustCompile(`after=[\d.ms]+ decided_locally=[1-9]\d* failed_open=0 failed_closed=\d+ returned_late=\d+ returns_lost=\d+ suppressed=[1-9]\d*\n`)
	if last := log[strings.Index(log, back):]; !counts.MatchString(last) {
		t.Errorf("got %q, want counts of the outage", last)
	}
}

func TestRedisDies(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	s := startForOutages(t, "-redis", "redis://"+redis.Addr())
	redis.Kill()
	wantDegraded(t, s)
	s.says(t, `"ratelimit: fail-closed refusal" policy=login`, 1)
	s.chargeUntil(t, gone, 1)
	for range 50 { // the limit is 10, and one per second
		if r := s.send(t, "GET /v1/orders/1", "", "X-API-Key", "demo-free"); r.status == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("got 50 orders without Redis, want a limit")
}

// TestNoRedis: without Redis at startup the server serves, logs it, and uses Redis when Redis comes.
func TestNoRedis(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		lose, regain func(*redistest.Server)
		reason       string
	}{
		{"dead", (*redistest.Server).Kill, (*redistest.Server).Restart, "reason=unavailable"},
		{"hangs", (*redistest.Server).Stop, (*redistest.Server).Continue, "reason=timeout"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			redis := redistest.Start(t)
			tt.lose(redis)
			s := startForOutages(t, "-redis", "redis://"+redis.Addr())
			wantDegraded(t, s)
			s.chargeUntil(t, gone, 1) // a busy process needs more failures to be sure
			if log := s.log.String(); !strings.Contains(log, tt.reason) || !strings.Contains(log, redis.Addr()) {
				t.Errorf("got log\n%s\nwant %s and the address in it", log, tt.reason)
			}
			tt.regain(redis)
			s.says(t, back, 1)
			refused := 0 // by a busy process, which misses its deadline
			redistest.Until(t, "Redis decides a login", func() bool {
				r := s.send(t, "POST /v1/login", right)
				if r.status == http.StatusServiceUnavailable {
					refused++
				} else if r.status != http.StatusOK || r.left() != 4 && refused == 0 {
					t.Errorf("login after Redis came: got %d and %d left, want 200 and 4", r.status, r.left())
				}
				return r.status != http.StatusServiceUnavailable
			})
			s.says(t, gone, 1)
		})
	}
}

// TestUnfitRedis: errors that will not resolve themselves stop the program at startup. The message names the fault, and
// says how to correct the URL or the server: users have no Go code.
func TestUnfitRedis(t *testing.T) {
	t.Parallel()
	plain := redistest.Start(t).Addr()
	password := redistest.Start(t, "--requirepass", "secret").Addr()
	rights := redistest.Start(t, "--user", "alice", "on", ">secret", "~penstock:*", "+@all", "-zadd").Addr()
	scripts := redistest.Start(t, "--rename-command", "EVAL", "hidden", "--rename-command", "EVALSHA", "hidden2").Addr()
	cluster := redistest.StartCluster(t).Nodes()[0].Addr()
	sentinel := redistest.StartSentinel(t).Addrs()[0]
	tests := []struct{ url, addr, says, advice string }{
		{"redis://" + password, password, "NOAUTH", "write redis://user:password@host:port"},
		{"redis://:Secret@" + password, password, "WRONGPASS", "check the user and the password in the URL"},
		{"redis://:Secret@" + password + "?addr=" + password, password, "WRONGPASS", "check the user and the password in the URL"},
		{"redis://alice:secret@" + rights, rights, "'zadd'", "+zadd"},
		{"redis://" + scripts, scripts, "unknown command", "Lua scripts"},
		{"redis://" + cluster, cluster, "MOVED", "a node of a Redis Cluster: add another node to the URL"},
		{"redis://" + plain + "?addr=" + plain, plain, "cluster support disabled", "leave addr out"},
		{"redis://" + sentinel, sentinel, "the server is a Sentinel", "add the name of the master"},
		{"redis://" + sentinel + "?master_name=other", sentinel, "the Sentinels do not know", "correct master_name"},
	}
	for _, tt := range tests {
		wantUnfit(t, tt.url, tt.addr, tt.says, tt.advice)
	}
}

// TestUnfitTLS: rediss:// is for servers with TLS whose certificate the system trusts.
func TestUnfitTLS(t *testing.T) {
	t.Parallel()
	addr := redistest.StartTLS(t).Addr()
	wantUnfit(t, "rediss://"+addr, addr, "certificate signed by unknown authority", "SSL_CERT_FILE")
}

// TestOneSideSpeaksTLS: a client cannot tell a server with TLS from a server that hangs. So the program serves, and logs a hint.
func TestOneSideSpeaksTLS(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"redis://" + redistest.StartTLS(t).Addr(), "rediss://" + redistest.Start(t).Addr() + "?dial_timeout=1s"} {
		s := startForOutages(t, "-redis", url)
		wantDegraded(t, s)
		s.says(t, `level=WARN msg="Redis not ready"`, 1)
		s.says(t, "check that the server and its Sentinels speak TLS exactly if the client has a TLSConfig", 1)
	}
}

// wantUnfit wants the program to end with an error. Redis may take long to refuse on a busy machine.
func wantUnfit(t *testing.T, url, addr, says, advice string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	log := new(text)
	c, err := parse([]string{"-addr", "127.0.0.1:0", "-redis", url}, log)
	if err != nil {
		t.Fatal(err)
	}
	c.deadline = deadline
	err = c.serve(ctx, slog.New(slog.NewTextHandler(log, nil)))
	said := fmt.Sprintf("%v\n%v", err, log)
	want := "cannot use Redis at " + addr
	if err == nil || !strings.Contains(said, want) || !strings.Contains(said, says) || !strings.Contains(said, advice) {
		t.Errorf("%s: got\n%s\nwant %q, %q and %q", url, said, want, says, advice)
	}
	for _, never := range []string{"secret", "redis.new", "tlsconfig", "mastername", "probe=", "overrides"} {
		if strings.Contains(strings.ToLower(said), never) {
			t.Errorf("%s: got %q, want no password, no Go, no arguments, and no other trouble in\n%s", url, never, said)
		}
	}
}

// TestRedisLosesItsRights: a misconfiguration that stops the program at startup is an outage later. The log has the
// outage once, and the misconfiguration once a minute.
func TestRedisLosesItsRights(t *testing.T) {
	t.Parallel()
	loseRights(t, 1)
}

// TestRedisLosesItsRightsTwice: the log has each outage once. The second one waits for its line until a minute has passed.
func TestRedisLosesItsRightsTwice(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	loseRights(t, 2)
}

func loseRights(t *testing.T, times int) {
	t.Helper()
	redis := redistest.Start(t)
	s := startForOutages(t, "-redis", "redis://"+redis.Addr())
	admin, began := redis.Client(), time.Now()
	for change := 1; change <= times; change++ {
		if err := admin.Do(t.Context(), "acl", "setuser", "default", "-evalsha", "-eval").Err(); err != nil {
			t.Fatal(err)
		}
		redistest.Until(t, "the server notices the outage", func() bool {
			s.send(t, "GET /nothing", "") // it takes some failures, and some time
			return strings.Count(s.log.String(), gone) >= change
		})
		s.says(t, gone, change)
		if err := admin.Do(t.Context(), "acl", "setuser", "default", "+@all").Err(); err != nil {
			t.Fatal(err)
		}
		s.says(t, back, change)
	}
	log, minutes := s.log.String(), int(time.Since(began)/time.Minute)
	if n := strings.Count(log, odd); n < 1 || n > 1+minutes || !strings.Contains(log, "reason=configuration") {
		t.Errorf("got log\n%s\nwant the misconfiguration once a minute, and the reason", log)
	}
}
