// Access logs that real servers write: package replay finds their clients, or refuses their lines.

package routers

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v4"
	echomiddleware "github.com/labstack/echo/v4/middleware"
	echo5 "github.com/labstack/echo/v5"
	echo5middleware "github.com/labstack/echo/v5/middleware"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/replay"
)

// A writer is a server's format of access logs.
type writer struct {
	name     string
	setting  string // of nginx: log_format; of HAProxy: lines of a frontend
	syslog   string // "": a file, otherwise a parameter of the server
	by       string // the addresses that the replay must find: "peer", "header" or "" if all lines are bad
	seconds  bool   // the log has durations
	spoofing bool   // a user's name may look like a client, which the replay must refuse
}

var nginxLogs = []writer{
	{name: "combined", setting: `'$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'`, by: "peer", spoofing: true},
	{name: "main", setting: `'$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" "$http_x_forwarded_for"'`, by: "peer", spoofing: true},
	{name: "vhost", setting: `'$host:$server_port $remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent'`, by: "peer", spoofing: true},
	{name: "forwarded", setting: `'$http_x_forwarded_for - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'`, by: "header", spoofing: true},
	{name: "list", setting: `'$proxy_add_x_forwarded_for - $remote_user [$time_local] "$request" $status $body_bytes_sent'`},
	{name: "both", setting: `'$remote_addr $http_x_forwarded_for - $remote_user [$time_local] "$request" $status $body_bytes_sent'`},
	{name: "json", setting: `escape=json '{"time":"$time_iso8601","remote_addr":"$remote_addr","user":"$remote_user","request":"$request","status":$status,"request_time":$request_time}'`, by: "peer", seconds: true},
	{name: "msec", setting: `escape=json '{"msec":"$msec","remote_addr":"$remote_addr","http_x_forwarded_for":"$http_x_forwarded_for","request_method":"$request_method","request_uri":"$request_uri","status":"$status","request_time":"$request_time"}'`, by: "peer", seconds: true},
	{name: "real", setting: `escape=json '{"msec":"$msec","http_x_real_ip":"$http_x_forwarded_for","remote_addr":"$remote_addr","request_method":"$request_method","request_uri":"$request_uri","status":"$status"}'`, by: "header"},
	{name: "pairs", setting: `'time=$time_iso8601 ip=$remote_addr method=$request_method path="$request_uri" status=$status request_time=$request_time agent="$http_user_agent"'`, by: "peer", seconds: true},
	{name: "syslogged", setting: `'$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent'`, syslog: ",tag=web", by: "peer", spoofing: true},
	{name: "nohostname", setting: `'$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent'`, syslog: ",nohostname", by: "peer", spoofing: true},
	{name: "jsonsyslogged", setting: `escape=json '{"msec":"$msec","remote_addr":"$remote_addr","request":"$request","status":"$status","request_time":"$request_time"}'`, syslog: ",tag=web", by: "peer", seconds: true},
}

var haproxyLogs = []writer{
	{name: "http", setting: "option httplog", syslog: "format raw", by: "peer", seconds: true},
	{name: "bsd", setting: "option httplog", syslog: "format rfc3164", by: "peer", seconds: true},
	{name: "syslog", setting: "option httplog", syslog: "format rfc5424", by: "peer", seconds: true},
	{name: "short", setting: "option httplog", syslog: "format short", by: "peer", seconds: true},
	{name: "timed", setting: "option httplog", syslog: "format timed", by: "peer", seconds: true},
	{name: "iso", setting: "option httplog", syslog: "format iso", by: "peer", seconds: true},
	{name: "captured", setting: "option httplog\n\tcapture request header User-Agent len 60\n\tcapture response header Server len 20", syslog: "format raw", by: "peer", seconds: true},
	{name: "asap", setting: "option httplog\n\toption logasap", syslog: "format raw", by: "peer", seconds: true},
	{name: "https", setting: "option httpslog", syslog: "format raw", by: "peer", seconds: true},
	{name: "clf", setting: "option httplog clf", syslog: "format raw", by: "peer"},
	{name: "tcp", setting: "option tcplog", syslog: "format raw"},
}

const nginxLogsConf = `daemon off; master_process off; pid %[1]s/pid; error_log /dev/null crit; worker_processes 1;
events { worker_connections 256; }
http {
	client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
%[2]s}
`

const haproxyLogsConf = `defaults
	mode http
	timeout client 60s
	timeout server 60s
	timeout connect 5s
backend service
	server s %s
%s`

// names are users that look like clients. nginx writes them as they are, because it logs names without a check.
var names = []string{
	"192.0.2.66 - x", "x 192.0.2.66 - x", "192.0.2.66", "192.0.2.66 x", "] 192.0.2.66 - x", "[192.0.2.66 - x \"", "- - 192.0.2.66 - x",
	"192.0.2.66 - - [28/Nov/2026", "[28/Nov/2026 192.0.2.66 ] - -", `{"ip"`, "<134>1 a b c d e - 192.0.2.66 - x",
}

// took is how long the service takes.
const took = 20 * time.Millisecond

// TestRealAccessLogs: ten requests of five clients through a real server, whatever its log format, are ten requests of five
// clients in the replay, or ten bad lines.
func TestRealAccessLogs(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(took) }))
	t.Cleanup(service.Close)
	address := service.Listener.Addr().String()

	dir := t.TempDir()
	ports, logs := make(map[string]int), make(map[string]func(lines int) string)
	var servers, frontends strings.Builder
	for _, w := range nginxLogs {
		ports[w.name] = freePort(t)
		target := filepath.Join(dir, w.name)
		logs[w.name] = func(lines int) string { return waitForLines(t, target, lines) }
		if w.syslog != "" {
			var port int
			port, logs[w.name] = receive(t)
			target = fmt.Sprintf("syslog:server=127.0.0.1:%d%s", port, w.syslog)
		}
		fmt.Fprintf(&servers, "\tlog_format l%[1]s %[2]s;\n\tserver { listen 127.0.0.1:%[3]d; access_log %[4]s l%[1]s; location / { proxy_pass http://%[5]s; } }\n", w.name, w.setting, ports[w.name], target, address)
	}
	for _, w := range haproxyLogs {
		ports[w.name] = freePort(t)
		var port int
		port, logs[w.name] = receive(t)
		fmt.Fprintf(&frontends, "frontend f-%s\n\tbind 127.0.0.1:%d\n\tlog 127.0.0.1:%d %s local0\n\t%s\n\tdefault_backend service\n", w.name, ports[w.name], port, w.syslog, w.setting)
	}
	probe := [2]int{freePort(t), freePort(t)} // a probe of another port might be in its log
	fmt.Fprintf(&servers, "\tserver { listen 127.0.0.1:%d; }\n", probe[0])
	fmt.Fprintf(&frontends, "frontend probe\n\tbind 127.0.0.1:%d\n", probe[1])
	start(t, probe[0], "nginx", "-c", write(t, dir, "nginx.conf", fmt.Sprintf(nginxLogsConf, dir, servers.String())))
	start(t, probe[1], "haproxy", "-db", "-f", write(t, dir, "haproxy.cfg", fmt.Sprintf(haproxyLogsConf, address, frontends.String())))

	for _, w := range append(nginxLogs, haproxyLogs...) {
		t.Run(w.name, func(t *testing.T) {
			sent := 10
			for i := range sent {
				request(t, ports[w.name], i%5+1, "alice")
			}
			if w.spoofing {
				for i, user := range names {
					request(t, ports[w.name], 11+i, user)
				}
				sent += len(names)
			}
			checkClients(t, w, logs[w.name](sent))
		})
	}
}

// TestRealLoggers: the same for the loggers of Go's frameworks.
func TestRealLoggers(t *testing.T) {
	work := func() { time.Sleep(took) }
	for name, of := range map[string]func(out *bytes.Buffer) http.Handler{
		"gin": func(out *bytes.Buffer) http.Handler {
			g := gin.New()
			g.Use(gin.LoggerWithWriter(out))
			g.GET("/orders/:id", func(*gin.Context) { work() })
			return g
		},
		"echo": func(out *bytes.Buffer) http.Handler {
			e := echo.New()
			e.Use(echomiddleware.LoggerWithConfig(echomiddleware.LoggerConfig{Output: out}))
			e.GET("/orders/:id", func(c echo.Context) error { work(); return c.NoContent(http.StatusOK) })
			return e
		},
		"echo 5": func(out *bytes.Buffer) http.Handler {
			e := echo5.New()
			e.Logger = slog.New(slog.NewJSONHandler(out, nil))
			e.Use(echo5middleware.RequestLogger())
			e.GET("/orders/:id", func(c *echo5.Context) error { work(); return c.NoContent(http.StatusOK) })
			return e
		},
		"slog": func(out *bytes.Buffer) http.Handler { return slogged(slog.NewJSONHandler(out, nil), work) },
		"slog, text": func(out *bytes.Buffer) http.Handler {
			return slogged(slog.NewTextHandler(out, nil), work)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			h := of(&out)
			for i := range 10 {
				r := httptest.NewRequest("GET", "/orders/7?of=all", nil)
				r.RemoteAddr = fmt.Sprintf("127.0.0.%d:5555", i%5+1)
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
			checkClients(t, writer{by: "peer", seconds: true}, out.String())
		})
	}
}

// slogged logs requests by a handler of slog.
func slogged(h slog.Handler, work func()) http.Handler {
	log := slog.New(h)
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		work()
		log.Info("a request", "method", r.Method, "path", r.URL.String(), "status", http.StatusOK, "remote_addr", r.RemoteAddr, "duration", time.Since(begun))
	})
}

// request sends a request of a client, which has its own address, also in X-Forwarded-For.
func request(t *testing.T, port, client int, user string) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(client))}}
	conn, err := d.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /orders/7?of=%%22all HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-Forwarded-For: 203.0.113.%d\r\nUser-Agent: agent \"x\" [1.0] \\ é\r\nAuthorization: Basic %s\r\n\r\n",
		client, base64.StdEncoding.EncodeToString([]byte(user+":secret")))
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close() // there is no body
	if response.StatusCode != http.StatusOK {
		t.Fatalf("got %s", response.Status)
	}
}

// receive listens for syslog, and returns a function that waits for some lines.
func receive(t *testing.T) (port int, text func(lines int) string) {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	var all strings.Builder
	return conn.LocalAddr().(*net.UDPAddr).Port, func(lines int) string {
		for buf := make([]byte, 1<<16); strings.Count(all.String(), "\n") < lines; {
			_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second)) // its error comes with the read's
			n, err := conn.Read(buf)
			if err != nil {
				t.Fatalf("%v, after %q", err, all.String())
			}
			all.WriteString(strings.TrimRight(string(buf[:n]), "\n") + "\n")
		}
		return all.String()
	}
}

// waitForLines waits for lines of a file.
func waitForLines(t *testing.T, name string, lines int) string {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(name)
		if err == nil && bytes.Count(text, []byte("\n")) >= lines {
			return string(text)
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("got %v and %q, want %d lines", err, text, lines)
		}
	}
}

// A report is what these tests read of a report of package replay.
type report struct {
	Lines, Requests int
	Bad             int      `json:"bad_lines"`
	Shown           []string `json:"bad_lines_shown"`
	Unrouted        int      `json:"unmatched"`
	Median          float64  `json:"median_duration"`
	Longest         float64  `json:"longest_duration"`
	Policies        []struct {
		MostDenied []struct {
			Key              string
			Requests, Denied int
		} `json:"most_denied"`
	}
}

// checkClients replays a log of ten requests of five clients.
func checkClients(t *testing.T, w writer, text string) {
	t.Helper()
	var out bytes.Buffer
	err := replay.Run(t.Context(), func(l algorithms.Limiter) (http.Handler, error) {
		m, err := ratelimit.New(l, nil, ratelimit.Policy{Name: "p", Key: keyfunc.IP(nil), Limit: algorithms.TokenBucket(1, 24*time.Hour)})
		if err != nil {
			return nil, err
		}
		mux := http.NewServeMux()
		mux.Handle("GET /orders/{id}", m.Handler(http.NotFoundHandler()))
		return mux, nil
	}, &replay.Options{Files: []string{"-"}, Stdin: strings.NewReader(text), Stdout: &out, Format: "json"})
	if w.by == "" {
		if err == nil || !strings.Contains(err.Error(), "no line of 10 is a request") {
			t.Errorf("got %v and %s, want all lines refused of\n%s", err, out.String(), text)
		}
		return
	}
	var got report
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &got)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var clients []string
	for _, p := range got.Policies {
		for _, c := range p.MostDenied {
			clients = append(clients, fmt.Sprintf("%s %d of %d", c.Key, c.Denied, c.Requests))
		}
	}
	slices.Sort(clients)
	var want []string
	for i := range 5 {
		address := "127.0.0.%d"
		if w.by == "header" {
			address = "203.0.113.%d"
		}
		want = append(want, fmt.Sprintf("ip="+address+" 1 of 2", i+1))
	}
	if !slices.Equal(clients, want) || got.Requests+got.Bad != got.Lines || !w.spoofing && got.Bad > 0 {
		t.Errorf("got the clients %q, want %q, of\n%s", clients, want, text)
	}
	if (got.Median > 0) != w.seconds || w.seconds && (got.Median < 0.95*took.Seconds() || got.Longest > time.Minute.Seconds()) {
		t.Errorf("got durations of %v s, at most %v s, want %v or a little more, of\n%s", got.Median, got.Longest, took, text)
	}
}
