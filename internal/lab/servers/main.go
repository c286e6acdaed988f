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
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/penstock-go/penstock/internal/lab/product"
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, flag.Args(), *file)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "servers:", err)
		os.Exit(1)
	}
}

// run tests the servers. It writes the table after each server, so that an interrupted run is not lost.
func run(ctx context.Context, paths []string, file string) error {
	if len(paths) == 0 {
		return errors.New("no server given or installed: run make test-servers SERVERS=\"/path/to/valkey-server ...\"")
	}
	tests, err := build(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tests.dir)
	var reports []report
	failed := false
	for _, path := range paths {
		r, err := tests.test(ctx, path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		reports = append(reports, r)
		failed = failed || len(r.failed) > 0
		text := table(reports, time.Now())
		fmt.Print(text)
		if file == "" {
			continue
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if failed {
		return errors.New("some tests fail on some servers")
	}
	return nil
}

// test runs all tests on one server. Then it runs each failed test again by itself.
func (b binaries) test(ctx context.Context, path string) (report, error) {
	name, version, err := redistest.Version(path)
	if err != nil {
		return report{}, err
	}
	r := report{server: name, version: version}
	for _, pkg := range packages {
		fmt.Fprintf(os.Stderr, "testing %s on %s %s (%s)\n", pkg, name, version, path)
		events, err := b.run(ctx, path, pkg, "-test.skip=Miniredis") // it is no server
		if err != nil {
			return report{}, err
		}
		r.add(events)
	}
	r.recheck(func(t testName) bool {
		top, _, _ := strings.Cut(t.test, "/")
		events, err := b.run(ctx, path, t.path, "-test.run=^"+regexp.QuoteMeta(top)+"$")
		if err != nil {
			return false
		}
		var alone report
		alone.add(events)
		return alone.passed > 0 && len(alone.failed) == 0
	})
	return r, ctx.Err()
}

// binaries are the built tests. They are built once for all servers.
type binaries struct{ root, dir string } // the product's directory, and theirs

func build(ctx context.Context) (b binaries, err error) {
	if b.root, err = product.Dir(ctx); err != nil {
		return b, err
	}
	if b.dir, err = os.MkdirTemp("", "servers-"); err != nil {
		return b, err
	}
	for _, pkg := range packages {
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", b.file(pkg), "./"+pkg)
		cmd.Dir, cmd.Stdout, cmd.Stderr = b.root, os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return b, errors.Join(err, os.RemoveAll(b.dir))
		}
	}
	return b, nil
}

func (b binaries) file(pkg string) string {
	return filepath.Join(b.dir, strings.ReplaceAll(pkg, "/", "_")+".test")
}

// run returns the events of a package's tests, as go test -json prints them. A failed test is no error.
func (b binaries) run(ctx context.Context, path, pkg string, args ...string) (io.Reader, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{
		"tool", "test2json", "-p", pkg, b.file(pkg), "-test.v=test2json", "-test.timeout=30m",
	}, args...)...)
	cmd.Dir, cmd.Env = filepath.Join(b.root, pkg), append(os.Environ(), "REDIS_SERVER="+path, "PENSTOCK_LONG=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	return &out, ctx.Err()
}
