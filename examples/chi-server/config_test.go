// Tests of the flags.

package main

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
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
		{[]string{"-redis", "redis://127.0.0.1:port"}, []string{"-redis", "port"}},
		{[]string{"-redis", "redis://:hunter2@127.0.0.1:port"}, []string{"-redis", "port"}},
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
		{[]string{"-trusted-proxies", "10.0.0.0/33,127.0.0.1/8,proxy"}, []string{"-trusted-proxies", "10.0.0.0/33", "proxy"}},
		{[]string{"-headers", ""}, []string{"-headers", "draft, separate, x-ratelimit or milliseconds"}},
		{[]string{"-headers", "draft,X,y"}, []string{"-headers", `"X"`, `"y"`}},
		{[]string{"-addr", "127.0.0.1:0", "-"}, []string{`unexpected argument "-"`}},
		{
			[]string{"-redis", "ftp://there", "-trusted-proxies", "them", "-headers", "none", "now"},
			[]string{"-redis", "ftp", "-trusted-proxies", "them", "-headers", "none", `"now"`},
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

// TestBadValues: the errors of the limiter name the flag, too.
func TestBadValues(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-prefix", "a b", "-redis", "redis://127.0.0.1:1"},
		{"-prefix", "{a}", "-redis", "redis://127.0.0.1:1"},
		{"-addr", "8080"},
		{"-addr", "127.0.0.1:99999"},
	} {
		code, said := runToEnd(t, args...)
		if code != exitFailed || !strings.Contains("\n"+said, "\nchi-server: "+args[0]+": ") {
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

// Each wrong flag gets one line, with the value and the remedy.
func TestWrongFlags(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args []string
		want string
		code int
	}{
		{[]string{"-redis", "127.0.0.1:6379"}, "-redis: want redis://host:port, e.g. redis://127.0.0.1:6379", exitUsage},
		{[]string{"-redis", "http://127.0.0.1:6379"}, "-redis: the scheme is http://: want redis://, or rediss:// for TLS", exitUsage},
		{[]string{"-redis", "redis://127.0.0.1/x"}, `-redis: invalid database number: "x"`, exitUsage},
		{[]string{"-redis", "redis://:p/w@127.0.0.1"}, "-redis: want redis://user:password@host:port/db, with %40 for @ in the password, %2F for / and so on", exitUsage},
		{[]string{"-trusted-proxies", "10.0.0"}, `-trusted-proxies "10.0.0": want addresses or CIDRs, e.g. 10.0.0.1 or 10.0.0.0/8`, exitUsage},
		{[]string{"-headers", "draft,foo"}, `-headers: unknown dialect "foo": want draft, separate, x-ratelimit or milliseconds`, exitUsage},
		{[]string{"-instances", "-1"}, "-instances -1: want 0 or more", exitUsage},
		{[]string{"-admin-token", "short"}, "-admin-token has 5 bytes: want 16 or more", exitUsage},
		{[]string{"-replay", "x", "-format", "xml"}, `replay: the format is "xml"; want text, json or html`, exitFailed},
		{[]string{"-demo-outage"}, "-demo-outage requires -redis", exitUsage},
		{[]string{"extra"}, `unexpected argument "extra"`, exitUsage},
		{
			[]string{"-redis", "redis://127.0.0.1:1", "-prefix", "a b"},
			`-prefix: Prefix is "a b"; want at most 64 bytes of printable ASCII without spaces and braces`, exitFailed,
		},
	}
	for _, tt := range tests {
		code, said := runToEnd(t, tt.args...)
		lines := slices.DeleteFunc(strings.Split(said, "\n"), func(line string) bool { return !strings.HasPrefix(line, "chi-server: ") })
		if code != tt.code || len(lines) != 1 || !strings.HasSuffix(lines[0], tt.want) {
			t.Errorf("%q: got exit code %d and %q, want %d and %q", tt.args, code, said, tt.code, tt.want)
		}
	}
}
