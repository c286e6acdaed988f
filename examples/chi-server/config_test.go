// Tests of the flags.

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// runToEnd runs a server that ends by itself. It returns the exit code and the output.
func runToEnd(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	stderr := new(text)
	code = run(ctx, args, stderr)
	if ctx.Err() != nil {
		t.Errorf("%v: the server still ran after %v", args, deadline)
	}
	return code, stderr.String()
}

func TestBadFlags(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args []string
		want []string // in the message
	}{
		{[]string{"-bogus"}, []string{"-bogus"}},
		{[]string{"-addr"}, []string{"-addr"}},
		{[]string{"-addr", "8080"}, []string{`-addr "8080"`, "host:port"}},
		{[]string{"-addr", ""}, []string{`-addr ""`, "host:port"}},
		{[]string{"-redis", "127.0.0.1:6379"}, []string{"-redis"}},
		{[]string{"-redis", "http://127.0.0.1"}, []string{"-redis", "http"}},
		{[]string{"-redis", "redis://127.0.0.1:port"}, []string{"-redis", "port"}},
		{[]string{"-redis", "redis://:hunter2@127.0.0.1:port"}, []string{"-redis", "port"}},
		{[]string{"-redis", "redis://127.0.0.1/zero"}, []string{"-redis", "zero"}},
		{[]string{"-redis", "redis://:hunter2"}, []string{"-redis", "host:port"}}, // no host
		{[]string{"-redis", "redis://:hunt/er2@127.0.0.1:6379"}, []string{"-redis", "%2F for /"}},
		{[]string{"-redis", "redis://:1/hunter2@127.0.0.1:6379"}, []string{"-redis", "%2F for /"}},
		{[]string{"-redis", "redis://:1?hunter2@127.0.0.1:6379"}, []string{"-redis", "%40 for @"}},
		{[]string{"-redis", "redis+cluster://a:1"}, []string{"-redis", "redis+cluster"}},
		{[]string{"-redis", "redis://a:1?addrs=b:2"}, []string{"-redis", "addrs"}},
		{[]string{"-redis", "redis://a:1?addr=b"}, []string{"-redis", "b"}},
		{[]string{"-redis", "http://a:1?addr=b:2"}, []string{"-redis", "http"}},
		{[]string{"-redis", "redis://alice:hunter2%@a:1?addr=b:2"}, []string{"-redis", "%40 for @"}},
		{[]string{"-redis", "redis://:hunter2@a:1?addr=b:2&bogus=1"}, []string{"-redis", "host:port"}},
		{[]string{"-redis", "redis://a:1?master_name=m&bogus=1"}, []string{"-redis", "bogus"}},
		{[]string{"-redis", "redis://a:1/zero?master_name=m"}, []string{"-redis", "zero"}},
		{[]string{"-redis", "redis://a:1?master_name=m&password=hunter2&bogus=1"}, []string{"-redis", "bogus"}},
		{[]string{"-redis", "redis://:1/hunter2@a:1?master_name=m"}, []string{"-redis", "%2F for /"}},
		{[]string{"-trusted-proxies", "127.0.0"}, []string{"-trusted-proxies", "127.0.0"}},
		{[]string{"-trusted-proxies", "10.0.0.0/8,"}, []string{"-trusted-proxies", `""`}},
		{[]string{"-trusted-proxies", "10.0.0.0/33,127.0.0.1/8,proxy"}, []string{"-trusted-proxies", "10.0.0.0/33", "proxy"}},
		{[]string{"-hammer", "127.0.0.1:8080"}, []string{`-hammer "127.0.0.1:8080"`, "http://"}},
		{[]string{"-hammer", "ftp://127.0.0.1"}, []string{`-hammer "ftp://127.0.0.1"`}},
		{[]string{"-demo-outage"}, []string{"-demo-outage", "-redis"}},
		{[]string{"-headers", ""}, []string{"-headers", "draft, separate or x-ratelimit"}},
		{[]string{"-headers", "all"}, []string{"-headers", `"all"`, "draft, separate or x-ratelimit"}},
		{[]string{"-headers", "draft,X,y"}, []string{"-headers", `"X"`, `"y"`}},
		{[]string{"-admin-token", "hunter2"}, []string{"-admin-token has 7 bytes", "16"}},
		{[]string{"-override", "demo-free=10"}, []string{"-override 1"}},
		{[]string{"-override", "demo-free=10/1m,hunter2=1/1s"}, []string{"-override 2: unknown API key"}},
		{[]string{"-replay", "a", "-hammer", "http://127.0.0.1:1/"}, []string{"-replay", "-hammer"}},
		{[]string{"-replay", "a", "-access-log", "b"}, []string{"-replay", "-access-log"}},
		{[]string{"-replay", "a", "-addr", "127.0.0.1:80", "-redis", "redis://127.0.0.1:1"}, []string{"-addr cannot be combined", "-redis cannot be combined"}},
		{[]string{"-replay", "a", "-policies", "b", "-override", "demo-free=1/1m"}, []string{"-override", "-policies"}},
		{[]string{"run"}, []string{`unexpected argument "run"`}},
		{[]string{"-addr", "127.0.0.1:0", "-"}, []string{`unexpected argument "-"`}},
		{
			[]string{"-addr", "here", "-redis", "ftp://there", "-trusted-proxies", "them", "-headers", "none", "now"},
			[]string{"-addr", "here", "-redis", "ftp", "-trusted-proxies", "them", "-headers", "none", `"now"`},
		},
	}
	for _, tt := range tests {
		code, said := runToEnd(t, tt.args...)
		if code != exitUsage {
			t.Errorf("%q: got exit code %d, want 2", tt.args, code)
		}
		if !strings.HasPrefix(said, "chi-server: ") {
			t.Errorf("%q: got message %q, want the program's name first", tt.args, said)
		}
		for _, want := range tt.want {
			if !strings.Contains(said, want) {
				t.Errorf("%q: got message %q, want %q in it", tt.args, said, want)
			}
		}
		if strings.Contains(said, "hunt") || strings.Contains(said, "er2") {
			t.Errorf("%q: got message %q, want no password in it", tt.args, said)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"-h", "-help", "--help"} {
		code, said := runToEnd(t, flag)
		if code != 0 {
			t.Errorf("%s: got exit code %d, want 0", flag, code)
		}
		for _, want := range []string{"-addr", "127.0.0.1:8080", "-redis", "-prefix", "-trusted-proxies", "-headers", "draft,separate", "master_name", "addr="} {
			if !strings.Contains(said, want) {
				t.Errorf("%s: got %q, want %q in it", flag, said, want)
			}
		}
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	tests := []struct{ url, addrs, client string }{
		{"redis://127.0.0.1", "127.0.0.1:6379", "*redis.Client db 0 user \"\" password \"\""},
		{"redis://alice:p%40ss@[::1]:1/3?pool_size=7", "[::1]:1", "*redis.Client db 3 user \"alice\" password \"p@ss\""},
		{"unix:///run/redis.sock?db=1", "/run/redis.sock", "*redis.Client db 1 user \"\" password \"\""},
		{"redis://alice:p%40ss@a:1?addr=b:2&addr=c:3", "a:1,b:2,c:3", "*redis.ClusterClient user \"alice\" password \"p@ss\""},
		{"rediss://a:1?addr=a:1", "a:1,a:1", "*redis.ClusterClient user \"\" password \"\""},
		{"redis://a:1?master_name=mymaster&addr=b:2&addr=%5B::1%5D:3", "a:1,b:2,[::1]:3", "*redis.Client db 0 user \"\" password \"\""},
		{"redis://:s@a:1/2?master_name=mymaster&username=alice&password=p%26ss", "a:1", "*redis.Client db 2 user \"alice\" password \"p&ss\""},
	}
	for _, tt := range tests {
		c, err := parse([]string{"-redis", tt.url}, io.Discard)
		if err != nil {
			t.Errorf("%s: %v", tt.url, err)
			continue
		}
		rdb := c.redis.open()
		defer rdb.Close()
		var client string
		switch rdb := rdb.(type) {
		case *redis.Client:
			o := rdb.Options()
			client = fmt.Sprintf("%T db %d user %q password %q", rdb, o.DB, o.Username, o.Password)
		case *redis.ClusterClient:
			o := rdb.Options()
			client = fmt.Sprintf("%T user %q password %q", rdb, o.Username, o.Password)
		}
		if c.redis.addrs != tt.addrs || client != tt.client {
			t.Errorf("%s: got %s of %s, want %s of %s", tt.url, client, c.redis.addrs, tt.client, tt.addrs)
		}
	}
}

// TestBadValues: the errors of the limiter name the flag, too.
func TestBadValues(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-prefix", "a b", "-redis", "redis://127.0.0.1:1"},
		{"-prefix", "{a}", "-redis", "redis://127.0.0.1:1"},
	} {
		code, said := runToEnd(t, args...)
		if code != exitFailed || !strings.HasPrefix(said, "chi-server: "+args[0]+": ") {
			t.Errorf("%q: got exit code %d and %q, want 1 and the flag", args, code, said)
		}
	}
}

func TestAddressInUse(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	code, said := runToEnd(t, "-addr", listener.Addr().String())
	if code != exitFailed || !strings.Contains(said, "chi-server: -addr: listen tcp "+listener.Addr().String()) {
		t.Errorf("got exit code %d and %q, want 1 and the address", code, said)
	}
}
