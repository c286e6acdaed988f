package redistest

import (
	"cmp"
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

//go:embed testdata/clock.c
var clockSource []byte

// A Clock is the wall clock of the servers that a test starts after SkewClocks.
type Clock struct {
	tb    testing.TB
	files string // path of the clock files, without the number of the server at its end
}

// clocks is the largest number of servers that can have clocks.
const clocks = 8

// SkewClocks gives a wall clock of its own to each server that the test starts from now on. The first server has the time
// of this machine. The clock of each further server is ahead of the previous server's by apart. The test must not be
// parallel, may start at most eight servers, and needs Linux and a C compiler.
func SkewClocks(tb testing.TB, apart time.Duration) *Clock {
	tb.Helper()
	server, err := exec.LookPath(cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server"))
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	dir := tb.TempDir()
	source, library, script := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so"), filepath.Join(dir, "redis-server")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	if out, err := exec.Command(cmp.Or(os.Getenv("CC"), "cc"), "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		tb.Fatalf("redistest: a test of clocks needs a C compiler: %v: %s", err, out)
	}
	c := &Clock{tb: tb, files: filepath.Join(dir, "ahead.")}
	for n := range clocks {
		c.set(n, time.Duration(n)*apart)
	}
	// The servers of a test start one after the other, so this script can count them.
	text := fmt.Sprintf(`#!/bin/sh
n=$(cat %[1]scount 2>/dev/null || echo 0)
echo $((n + 1)) >%[1]scount
export PENSTOCK_CLOCK=%[1]s$n LD_PRELOAD=%[2]s
exec %[3]s "$@"
`, c.files, library, server)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil { //nolint:gosec // it is executed
		tb.Fatalf("redistest: %v", err)
	}
	tb.Setenv("REDIS_SERVER", script)
	return c
}

// Step sets how far the clocks of all servers are ahead of this machine's. It may be negative.
func (c *Clock) Step(ahead time.Duration) {
	c.tb.Helper()
	for n := range clocks {
		c.set(n, ahead)
	}
}

// set writes eight bytes in place, because servers have mapped the file.
func (c *Clock) set(n int, ahead time.Duration) {
	c.tb.Helper()
	file, err := os.OpenFile(fmt.Sprint(c.files, n), os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(ahead.Microseconds())), 0)
		_ = file.Close()
	}
	if err != nil {
		c.tb.Fatalf("redistest: %v", err)
	}
}
