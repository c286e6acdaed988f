package redistest

import (
	"cmp"
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// program returns the path of the server's program.
func program() (string, error) {
	return exec.LookPath(cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server"))
}

// skipWithoutServer skips the test when there is no redis-server, with -short only.
func skipWithoutServer(tb testing.TB) {
	tb.Helper()
	if !testing.Testing() || !testing.Short() {
		return
	}
	if _, err := program(); err != nil {
		tb.Skipf("left out by -short: %v", err)
	}
}

var versionLine = regexp.MustCompile(`^(\w+) server v=(\S+)`)

// Version returns the name and the version that a server's program prints about itself, such as Redis and 7.0.15.
func Version(path string) (name, version string, err error) {
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		return "", "", err
	}
	parts := versionLine.FindSubmatch(out)
	if parts == nil {
		return string(out), "", nil
	}
	return string(parts[1]), string(parts[2]), nil
}

// Cannot begins the message of a test that was skipped because the server cannot run it; see internal/lab/servers.
const Cannot = "cannot run here: "

// SkipOn skips the test on servers of that name, such as KeyDB, that lack a feature that the test needs. why names the
// feature. Do not skip a test on the default server.
func SkipOn(tb testing.TB, name, why string) {
	tb.Helper()
	path, _ := program()
	if tested, _, _ := Version(path); tested == name {
		tb.Skip(Cannot + why)
	}
}
