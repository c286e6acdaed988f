// Command servers runs the tests that need Redis on several servers, one after the other, and writes a table of the
// results. Each argument is the path of a server's program, such as /usr/bin/valkey-server.
//
// The command runs a failed test again by itself, because most tests that fail on a busy machine pass then. The table
// names the tests that fail again, the tests that pass then, and the tests that a server cannot run, with the reasons.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/penstock-go/penstock/internal/lab/command"
	"github.com/penstock-go/penstock/internal/lab/nottest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// packages has the packages whose tests depend most on the server.
var packages = []string{
	"algorithms/internal/tests", "algorithms/shared", "algorithms/shared/internal/batch", "middleware/overrides", "middleware/internal/tests", "lua",
	"internal/redistest",
}

func main() {
	file := flag.String("o", "", "write the table into this `file`")
	flag.Parse()
	command.Main("servers", func(ctx context.Context) error {
		return nottest.Run(func(o *nottest.Owner) { run(ctx, o, flag.Args(), *file) })
	})
}

// run tests the servers. It writes the table after each server, so that an interrupted run is not lost.
func run(ctx context.Context, o *nottest.Owner, paths []string, file string) {
	if len(paths) == 0 {
		o.Fatalf("no server given or installed: run make test-servers SERVERS=\"/path/to/valkey-server ...\"")
	}
	root, failed := nottest.Must(command.Product(ctx)), false
	var reports []report
	for _, path := range paths {
		r, err := test(ctx, root, path)
		if err != nil {
			o.Fatalf("%s: %w", path, err)
		}
		reports = append(reports, r)
		failed = failed || len(r.failed) > 0
		text := table(reports, time.Now())
		fmt.Print(text)
		if file != "" {
			nottest.Check(os.WriteFile(file, []byte(text), 0o644))
		}
	}
	if failed {
		o.Fatalf("some tests fail on some servers")
	}
}

// test runs all tests on one server. Then it runs each failed test again by itself.
func test(ctx context.Context, root, path string) (report, error) {
	name, version, err := redistest.Version(path)
	if err != nil {
		return report{}, err
	}
	r := report{server: name, version: version}
	fmt.Fprintf(os.Stderr, "testing %s %s (%s)\n", name, version, path)
	args := []string{"-skip=Miniredis"} // it is no server
	for _, pkg := range packages {
		args = append(args, "./"+pkg)
	}
	if err := goTest(ctx, root, path, &r, args...); err != nil {
		return report{}, err
	}
	r.recheck(func(t testName) bool {
		top, _, _ := strings.Cut(t.test, "/")
		var alone report
		err := goTest(ctx, root, path, &alone, "-run=^"+regexp.QuoteMeta(top)+"$", "./"+t.path)
		return err == nil && alone.passed > 0 && len(alone.failed) == 0
	})
	return r, ctx.Err()
}

// goTest adds the results of tests to a report. A failed test is no error.
func goTest(ctx context.Context, root, server string, r *report, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-vet=off", "-count=1", "-p=1", "-timeout=30m"}, args...)...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "REDIS_SERVER="+server, "PENSTOCK_LONG=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		return err
	}
	r.add(&out)
	return ctx.Err()
}
