package main

import (
	"context"
	"net"
	"strings"
	"testing"
)

// runToEnd runs a server that should end by itself, and returns its exit code and what it said.
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
		{[]string{"-trusted-proxies", "127.0.0.1"}, []string{"-trusted-proxies", "127.0.0.1"}},
		{[]string{"-trusted-proxies", "10.0.0.0/8,"}, []string{"-trusted-proxies", `""`}},
		{[]string{"-trusted-proxies", "10.0.0.0/33,127.0.0.1/8,proxy"}, []string{"-trusted-proxies", "10.0.0.0/33", "proxy"}},
		{[]string{"-headers", ""}, []string{"-headers", "draft, triple or x"}},
		{[]string{"-headers", "all"}, []string{"-headers", `"all"`, "draft, triple or x"}},
		{[]string{"-headers", "draft,X,y"}, []string{"-headers", `"X"`, `"y"`}},
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
		if strings.Contains(said, "hunter2") {
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
		for _, want := range []string{"-addr", "127.0.0.1:8080", "-redis", "-prefix", "-trusted-proxies", "-headers", "draft,triple"} {
			if !strings.Contains(said, want) {
				t.Errorf("%s: got %q, want %q in it", flag, said, want)
			}
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
	if code != exitFailed || !strings.Contains(said, "chi-server: listen tcp "+listener.Addr().String()) {
		t.Errorf("got exit code %d and %q, want 1 and the address", code, said)
	}
}

func TestSecret(t *testing.T) {
	const warning = "level=WARN msg=\"PENSTOCK_SECRET is not set"
	tests := []struct {
		secret string
		warns  bool
	}{
		{"", true},
		{"sixteen bytes, ok", false},
	}
	for _, tt := range tests {
		t.Setenv("PENSTOCK_SECRET", tt.secret)
		s := start(t)
		if r := s.send(t, "POST /v1/charges", "", "X-API-Key", "demo-free"); r.status != 200 {
			t.Errorf("%q: got %d, want 200", tt.secret, r.status)
		}
		if log := s.log.String(); strings.Contains(log, warning) != tt.warns || tt.secret != "" && strings.Contains(log, tt.secret) {
			t.Errorf("%q: got log\n%s\nwant a warning: %v, and no secret", tt.secret, log, tt.warns)
		}
	}
}

func TestShortSecret(t *testing.T) {
	t.Setenv("PENSTOCK_SECRET", "fifteen bytes..")
	code, said := runToEnd(t, "-addr", "127.0.0.1:0")
	if want := "chi-server: PENSTOCK_SECRET has 15 bytes: want 16 or more\n"; code != exitUsage || !strings.HasPrefix(said, want) {
		t.Errorf("got exit code %d and %q, want 2 and %q", code, said, want)
	}
}
