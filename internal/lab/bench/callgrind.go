// A redis-server whose instructions callgrind counts.

package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// serverEnv is the variable with the program that redistest starts as its server.
const serverEnv = "REDIS_SERVER"

// A callgrind is a redis-server under valgrind's tool callgrind, which makes it about
// 50 times slower. It counts the instructions of the server, without the kernel's.
type callgrind struct {
	*server
	pid   string
	out   string // the files with counts are out.1, out.2 ...
	dumps int
}

// startCallgrind starts a server that does as little as possible between commands.
func startCallgrind(ctx context.Context) (*callgrind, error) {
	program, err := exec.LookPath(cmp.Or(os.Getenv(serverEnv), "redis-server"))
	if err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("valgrind"); err != nil {
		return nil, fmt.Errorf("%w: install the package valgrind", err)
	}
	dir, err := os.MkdirTemp("", "penstock-callgrind-")
	if err != nil {
		return nil, err
	}
	c := &callgrind{out: filepath.Join(dir, "out")}
	script := filepath.Join(dir, "redis-server")
	text := fmt.Sprintf("#!/bin/sh\nexec valgrind --tool=callgrind --callgrind-out-file=%s %s \"$@\" --hz 1 --jemalloc-bg-thread no\n", c.out, program)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		return nil, err
	}
	defer os.Setenv(serverEnv, os.Getenv(serverEnv))
	if err := os.Setenv(serverEnv, script); err != nil {
		return nil, err
	}
	if c.server, err = startServer(); err != nil {
		return nil, err
	}
	c.owner.Cleanup(func() { _ = os.RemoveAll(dir) })
	if c.pid, err = c.info(ctx, "server", "process_id"); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// count returns how many instructions the server executes while f runs. A nil c
// counts nothing.
func (c *callgrind) count(ctx context.Context, f func() error) (float64, error) {
	if c == nil {
		return math.NaN(), f()
	}
	if err := c.control(ctx, "zero"); err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	if err := c.control(ctx, "dump"); err != nil {
		return 0, err
	}
	c.dumps++
	return totalOf(fmt.Sprintf("%s.%d", c.out, c.dumps))
}

// control sends callgrind a command, as callgrind_control does, and returns when it is
// done. vgdb interrupts a server that waits for clients after a millisecond.
func (c *callgrind) control(ctx context.Context, command string) error {
	out, err := exec.CommandContext(ctx, "vgdb", "--pid="+c.pid, "--max-invoke-ms=1", command).CombinedOutput()
	if err != nil {
		return fmt.Errorf("vgdb %s: %w: %s", command, err, out)
	}
	return nil
}

// totalOf returns the number of instructions in a file of callgrind.
func totalOf(file string) (float64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if total, ok := strings.CutPrefix(line, "totals:"); ok {
			return strconv.ParseFloat(strings.TrimSpace(total), 64)
		}
	}
	return 0, fmt.Errorf("%s has no totals", file)
}
