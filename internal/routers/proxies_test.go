// The settings of RECIPES.md for proxies, with a real nginx, a real HAProxy and a chain that writes Forwarded as Envoy's
// users configure it. Whatever a hostile client sends, it is counted by the address that it has.

package routers

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/keyfunc"
)

// nearest is the address of the proxies nearest to the service, middle of the one before them in a chain, and client of
// the hostile client.
const nearest, middle, client = "127.0.0.1", "127.0.0.2", "127.0.0.9"

func prefixes(addresses ...string) (all []netip.Prefix) {
	for _, a := range addresses {
		all = append(all, netip.PrefixFrom(netip.MustParseAddr(a), 32))
	}
	return all
}

// settings are the options of the service, by the first segment of the path.
var settings = map[string]*keyfunc.IPOptions{
	"xff":            {Trusted: prefixes(nearest)},
	"xff-hops":       {Hops: 1},
	"real":           {Trusted: prefixes(nearest), Header: "X-Real-IP"},
	"forwarded":      {Trusted: prefixes(nearest), Header: "Forwarded"},
	"forwarded-hops": {Hops: 1, Header: "Forwarded"},
	"unix":           {TrustUnix: true},
	"unix-forwarded": {TrustUnix: true, Header: "Forwarded"},
	"chain":          {Trusted: prefixes(nearest, middle)},
	"chain-hops":     {Hops: 2},
	"forwards":       {Trusted: prefixes(nearest, middle), Header: "Forwarded"},
	"forwards-hops":  {Hops: 2, Header: "Forwarded"},
}

// keys answers with the key of the client under the setting that the path names.
func keys(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(r.URL.Path[1:], "/")
	key, _, err := keyfunc.IP(settings[name]).Append(nil, &keyfunc.Request{Request: r})
	fmt.Fprintln(w, string(key), err, r.RemoteAddr, r.Header)
}

// The maps are of nginx's documentation, https://www.nginx.com/resources/wiki/start/topics/examples/forwarded/: the client's
// header stays if it is valid.
const nginxConf = `daemon off; master_process off; pid %[1]s/pid; error_log /dev/null crit; worker_processes 1;
events { worker_connections 256; }
http {
	access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	map $remote_addr $element {
		~^[0-9.]+$ "for=$remote_addr";
		~^[0-9A-Fa-f:.]+$ "for=\"[$remote_addr]\"";
		default "for=unknown";
	}
	map $http_forwarded $forwarded {
		"~^(,[ \\t]*)*([!#$%%&'*+.^_` + "`" + `|~0-9A-Za-z-]+=([!#$%%&'*+.^_` + "`" + `|~0-9A-Za-z-]+|\"([\\t \\x21\\x23-\\x5B\\x5D-\\x7E\\x80-\\xFF]|\\\\[\\t \\x21-\\x7E\\x80-\\xFF])*\"))?(;([!#$%%&'*+.^_` + "`" + `|~0-9A-Za-z-]+=([!#$%%&'*+.^_` + "`" + `|~0-9A-Za-z-]+|\"([\\t \\x21\\x23-\\x5B\\x5D-\\x7E\\x80-\\xFF]|\\\\[\\t \\x21-\\x7E\\x80-\\xFF])*\"))?)*([ \\t]*,([ \\t]*([!#$%%&'*+.^_` + "`" + `|~0-9A-Za-z-]+=([!#$%%&'*+.^_` + "`" + `|~0-9A-Za-z-]+|\"([\\t \\x21\\x23-\\x5B\\x5D-\\x7E\\x80-\\xFF]|\\\\[\\t \\x21-\\x7E\\x80-\\xFF])*\"))?(;([!#$%%&'*+.^_` + "`" + `|~0-9A-Za-z-]+=([!#$%%&'*+.^_` + "`" + `|~0-9A-Za-z-]+|\"([\\t \\x21\\x23-\\x5B\\x5D-\\x7E\\x80-\\xFF]|\\\\[\\t \\x21-\\x7E\\x80-\\xFF])*\"))?)*)?)*$" "$http_forwarded, $element";
		default "$element";
	}
	server {
		listen 127.0.0.1:%[2]d;
		proxy_bind ` + nearest + `;
		proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
		proxy_set_header X-Real-IP $remote_addr;
		proxy_set_header Forwarded $forwarded;
		location / { proxy_pass http://127.0.0.1:%[4]d; }
		location /unix { proxy_bind off; proxy_pass http://unix:%[5]s; }
		location /chain { proxy_bind ` + middle + `; proxy_pass http://127.0.0.1:%[3]d; }
		location /forwards { proxy_bind ` + middle + `; proxy_pass http://127.0.0.1:%[3]d; }
	}
}
`

const haproxyConf = `defaults
	mode http
	timeout client 60s
	timeout server 60s
	timeout connect 5s
	option forwardfor
frontend f
	bind 127.0.0.1:%[1]d
	http-request set-header X-Real-IP %%[src]
	http-request add-header Forwarded for=%%[src]
	use_backend unix if { path_beg /unix }
	default_backend tcp
backend tcp
	server s 127.0.0.1:%[2]d source ` + nearest + `
backend unix
	server s unix@%[3]s
`

func TestRealProxies(t *testing.T) {
	dir, err := os.MkdirTemp("", "p") // short, because the path of a socket has at most 104 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // nginx drops its privileges
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "socket")
	unix, err := net.Listen("unix", socket)
	if err == nil {
		err = os.Chmod(socket, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	service := httptest.NewServer(http.HandlerFunc(keys))
	t.Cleanup(service.Close)
	onSocket := &http.Server{Handler: http.HandlerFunc(keys)}
	go func() { _ = onSocket.Serve(unix) }()
	t.Cleanup(func() { _ = onSocket.Close() })

	port := service.Listener.Addr().(*net.TCPAddr).Port
	nginx, haproxy := freePort(t), freePort(t)
	start(t, nginx, "nginx", "-c", write(t, dir, "nginx.conf", fmt.Sprintf(nginxConf, dir, nginx, haproxy, port, socket)))
	start(t, haproxy, "haproxy", "-db", "-f", write(t, dir, "haproxy.cfg", fmt.Sprintf(haproxyConf, haproxy, port, socket)))

	for _, name := range []string{"xff", "xff-hops", "real", "forwarded", "forwarded-hops", "unix", "unix-forwarded"} {
		attack(t, "nginx", nginx, name)
		attack(t, "HAProxy", haproxy, name)
	}
	for _, name := range []string{"chain", "chain-hops", "forwards", "forwards-hops"} {
		attack(t, "nginx and HAProxy", nginx, name)
	}
}

// TestChainOfForwarded: two proxies append elements with ports, hosts and quotes, to one line.
func TestChainOfForwarded(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(keys))
	t.Cleanup(service.Close)
	next := service.URL
	for _, from := range []string{nearest, middle} {
		u, err := url.Parse(next)
		if err != nil {
			t.Fatal(err)
		}
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		proxy := httptest.NewServer(&httputil.ReverseProxy{
			Transport: &http.Transport{DialContext: dialer.DialContext},
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(u)
				before := append(r.In.Header["Forwarded"], "")
				before[len(before)-1] = fmt.Sprintf(`host="a\"b, c\\";for="%s";proto=http;by="[fd00::1]:80"`, r.In.RemoteAddr)
				r.Out.Header["Forwarded"] = []string{strings.Join(before, ", ")}
			},
		})
		t.Cleanup(proxy.Close)
		next = proxy.URL
	}
	u, err := url.Parse(next)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"forwards", "forwards-hops"} {
		var port int
		_, _ = fmt.Sscan(u.Port(), &port)
		attack(t, "a chain", port, name)
	}
}

// shards are what a hostile client puts together.
var shards = []string{
	`"`, `\`, ",", ";", "=", "for=", "for=6.6.6.6", "6.6.6.6", `for="[2001:db8::1]:80"`, "_x", "unknown", " ", nearest, middle, "for=" + nearest, "by=", "[", "]",
	":", `host="a\"b"`, `host="a`, "", client + "1",
}

// attack sends hostile headers from the client's address through the proxy at the port.
func attack(t *testing.T, proxy string, port int, setting string) {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(client)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers, random := bufio.NewReader(conn), rand.New(rand.NewPCG(1, 2))
	headers := []string{"", `"`, `host="a\"b"`, `for=x\`, "for=6.6.6.6", "6.6.6.6", `for="`, ",", nearest, "for=" + nearest}
	for range 150 {
		var sent strings.Builder
		for range 1 + random.IntN(8) {
			sent.WriteString(shards[random.IntN(len(shards))])
		}
		headers = append(headers, sent.String())
	}
	for i, sent := range headers {
		fmt.Fprintf(conn, "GET /%s/x HTTP/1.1\r\nHost: service\r\n", setting)
		for range i % 3 { // no, one or two lines of each
			fmt.Fprintf(conn, "X-Forwarded-For: %[1]s\r\nForwarded: %[1]s\r\nX-Real-IP: %[1]s\r\n", sent)
		}
		fmt.Fprint(conn, "\r\n")
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("%s, %s, %q: %v", proxy, setting, sent, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK || !strings.HasPrefix(string(body), "ip="+client+" <nil> ") {
			t.Errorf("%s, %s: %q: got %d %s, want ip=%s", proxy, setting, sent, resp.StatusCode, body, client)
		}
	}
}

// start starts a proxy, which ends with the test, and waits until it listens.
func start(t *testing.T, port int, name string, args ...string) {
	t.Helper()
	c := exec.Command(name, args...)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatalf("%v: run make test-routers, which installs it", err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()         // its error says that it was killed
	})
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("%s does not listen: %v", name, err)
		}
	}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// freePort returns a port of 127.0.0.1 on which nothing listens, below those of outgoing connections.
func freePort(t *testing.T) int {
	t.Helper()
	for range 1000 {
		port := 10_000 + rand.IntN(10_000)
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}
