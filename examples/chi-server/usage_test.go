// The text of -h, and of wrong flags.

package main

import (
	"flag"
	"net"
	"slices"
	"strings"
	"testing"
)

func TestUsageHasEveryFlag(t *testing.T) {
	t.Parallel()
	code, said := runToEnd(t, "-h")
	if code != 0 {
		t.Errorf("got exit code %d, want 0", code)
	}
	for line := range strings.Lines(said) {
		if len(line) > columns+1 && !strings.Contains(strings.TrimLeft(line, " "), "  ") {
			t.Errorf("got a line of %d columns: %s", len(line)-1, line)
		}
	}
	grouped := map[string]bool{}
	for _, group := range groups {
		for _, name := range group.flags {
			if grouped[name] {
				t.Errorf("-%s is in two groups", name)
			}
			grouped[name] = true
		}
	}
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	defineFlags(flags)
	flags.VisitAll(func(f *flag.Flag) {
		if !grouped[f.Name] {
			t.Errorf("-%s is in no group of -h", f.Name)
		}
	})
}

// Each wrong flag gets one line, with the value and the remedy.
func TestWrongFlags(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	tests := []struct {
		args []string
		want string
		code int
	}{
		{[]string{"-override", "demo-free=10"}, `-override 1: "10" is not a limit: want REQUESTS/WINDOW, e.g. 10/1m`, exitUsage},
		{[]string{"-override", "nobody=10/1m"}, "-override 1: unknown API key: want one of demo-enterprise, demo-free, demo-pro", exitUsage},
		{[]string{"-redis", "127.0.0.1:6379"}, "-redis: want redis://host:port, e.g. redis://127.0.0.1:6379", exitUsage},
		{[]string{"-redis", "http://127.0.0.1:6379"}, "-redis: the scheme is http://: want redis://, or rediss:// for TLS", exitUsage},
		{[]string{"-redis", "redis://127.0.0.1/x"}, `-redis: invalid database number: "x"`, exitUsage},
		{[]string{"-redis", "redis://:p/w@127.0.0.1"}, "-redis: want redis://user:password@host:port/db, with %40 for @ in the password, %2F for / and so on", exitUsage},
		{[]string{"-demo-outage"}, "-demo-outage requires -redis", exitUsage},
		{[]string{"-addr", "8080"}, `-addr "8080": want host:port, e.g. 127.0.0.1:8080`, exitUsage},
		{[]string{"-addr", "127.0.0.1:99999"}, `-addr "127.0.0.1:99999": want a port from 0 to 65535`, exitUsage},
		{[]string{"-trusted-proxies", "10.0.0"}, `-trusted-proxies "10.0.0": want addresses or CIDRs, e.g. 10.0.0.1 or 10.0.0.0/8`, exitUsage},
		{[]string{"-headers", "draft,foo"}, `-headers: unknown dialect "foo": want draft, separate or x-ratelimit`, exitUsage},
		{[]string{"-admin-token", "short"}, "-admin-token has 5 bytes: want 16 or more", exitUsage},
		{[]string{"-hammer", "localhost"}, `-hammer "localhost": want a URL, e.g. http://127.0.0.1:8080/v1/orders/1`, exitUsage},
		{[]string{"-svg", "x"}, "-svg requires -replay", exitUsage},
		{[]string{"-replay", "x", "-format", "xml"}, `replay: the format is "xml"; want text or json`, exitFailed},
		{[]string{"extra"}, `unexpected argument "extra"`, exitUsage},
		{
			[]string{"-redis", "redis://127.0.0.1:1", "-prefix", "a b"},
			`-prefix: Prefix is "a b"; want at most 64 bytes of printable ASCII without spaces and braces`, exitFailed,
		},
		{[]string{"-addr", taken.Addr().String()}, "address already in use: choose another port", exitFailed},
	}
	for _, tt := range tests {
		code, said := runToEnd(t, tt.args...)
		lines := slices.DeleteFunc(strings.Split(said, "\n"), func(line string) bool { return !strings.HasPrefix(line, "chi-server: ") })
		if code != tt.code || len(lines) != 1 || !strings.HasSuffix(lines[0], tt.want) {
			t.Errorf("%q: got exit code %d and %q, want %d and %q", tt.args, code, said, tt.code, tt.want)
		}
	}
}
