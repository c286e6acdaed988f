// Servers with middleware of other Go modules, and servers that are processes.

package finish

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/didip/tollbooth/v7"
	"github.com/go-chi/httprate"
	"github.com/sethvargo/go-limiter/httplimit"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"
)

var ok = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// goServers are middleware of Go modules.
func goServers() []server {
	return []server{
		{"httprate*", handled(func() http.Handler {
			return httprate.LimitBy(quota, window, httprate.Key("*"))(ok)
		})},
		{"ulule/limiter*", handled(func() http.Handler {
			return stdlib.NewMiddleware(limiter.New(memory.NewStore(), limiter.Rate{Period: window, Limit: quota})).Handler(ok)
		})},
		{"tollbooth", handled(func() http.Handler { // it advertises its rate, and not what is left of its burst
			return tollbooth.LimitHandler(tollbooth.NewLimiter(10, nil).SetBurst(20), ok)
		})},
		{"throttled*", handled(func() http.Handler {
			store, err := memstore.NewCtx(100)
			if err != nil {
				panic(err)
			}
			rate, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(10), MaxBurst: 19})
			if err != nil {
				panic(err)
			}
			l := throttled.HTTPRateLimiterCtx{RateLimiter: rate, VaryBy: &throttled.VaryBy{Custom: func(*http.Request) string { return "all" }}}
			return l.RateLimit(ok)
		})},
		{"go-limiter*", handled(func() http.Handler {
			store, err := memorystore.New(&memorystore.Config{Tokens: quota, Interval: window})
			if err != nil {
				panic(err)
			}
			m, err := httplimit.NewMiddleware(store, func(*http.Request) (string, error) { return "all", nil })
			if err != nil {
				panic(err)
			}
			return m.Handle(ok)
		})},
	}
}

var runs atomic.Int64

// at returns a server at a port. It counts each run apart, by the header X-Run.
func at(name string, port int) server {
	return server{name, func() (string, http.RoundTripper, func()) {
		run, base := fmt.Sprint(runs.Add(1)), &http.Transport{MaxIdleConnsPerHost: 64}
		return fmt.Sprintf("http://127.0.0.1:%d/", port), counter(func(req *http.Request) (*http.Response, error) {
			req = req.Clone(req.Context())
			req.Header.Set("X-Run", run)
			return base.RoundTrip(req)
		}), base.CloseIdleConnections
	}}
}

// npmServers starts servers.mjs.
func npmServers(t *testing.T) (servers []server) {
	t.Helper()
	out := start(t, exec.Command("node", "servers.mjs"))
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "all"; {
		name, number, _ := strings.Cut(lines.Text(), "\t")
		var port int
		if _, err := fmt.Sscan(number, &port); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		servers = append(servers, at(name, port))
	}
	if len(servers) != 7 {
		t.Fatalf("node started %d servers: run make test-finish", len(servers))
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // the process must not block
	return servers
}

// start starts a process until the end of the test.
func start(t *testing.T, c *exec.Cmd) io.Reader {
	t.Helper()
	c.Stderr = os.Stderr
	_, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()         // its error says that it was killed
	})
	return out
}

const nginxConf = `daemon off; master_process off; pid %[1]s/pid; error_log /dev/null crit; worker_processes 1;
events { worker_connections 4096; }
http {
	access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	limit_req_zone $http_x_run zone=burst:10m rate=10r/s;
	limit_req_zone $http_x_run zone=tooMany:10m rate=10r/s;
	limit_req_zone $http_x_run zone=none:10m rate=10r/s;
	keepalive_requests 100000;
	server { listen 127.0.0.1:%[2]d; location / { limit_req zone=burst burst=20 nodelay; empty_gif; } }
	server { listen 127.0.0.1:%[3]d; location / { limit_req zone=tooMany burst=20 nodelay; limit_req_status 429; empty_gif; } }
	server { listen 127.0.0.1:%[4]d; location / { limit_req zone=none; empty_gif; } }
}
`

const haproxyConf = `global
	maxconn 8000
defaults
	mode http
	timeout client 60s
	timeout server 60s
	timeout connect 5s
	timeout http-keep-alive 60s
frontend f
	bind 127.0.0.1:%d
	stick-table type string len 32 size 100k expire 60s store http_req_rate(6s)
	http-request track-sc0 req.hdr(X-Run)
	http-request deny deny_status 429 if { sc_http_req_rate(0) gt 60 }
	http-request return status 200
`

// proxies starts nginx and HAProxy.
func proxies(t *testing.T) []server {
	t.Helper()
	dir, ports := t.TempDir(), []int{freePort(t), freePort(t), freePort(t), freePort(t)}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.Chmod(dir, 0o755); err != nil { // nginx drops its privileges
		t.Fatal(err)
	}
	start(t, exec.Command("nginx", "-c", write("nginx.conf", fmt.Sprintf(nginxConf, dir, ports[0], ports[1], ports[2]))))
	start(t, exec.Command("haproxy", "-db", "-f", write("haproxy.cfg", fmt.Sprintf(haproxyConf, ports[3]))))
	for _, port := range ports {
		for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err == nil {
				_ = conn.Close() // nothing was sent
				break
			}
			if time.Since(begun) > 10*time.Second {
				t.Fatalf("no server listens: %v", err)
			}
		}
	}
	return []server{
		at("nginx, 503, burst 20", ports[0]), at("nginx, 429, burst 20", ports[1]), at("nginx, 503, no burst", ports[2]),
		at("HAProxy, 429, counts denials", ports[3]),
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
