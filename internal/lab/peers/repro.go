package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// program returns the folder of the program that reproduces a red cell.
func (c cell) program() string { return c.library.slug + "-" + c.promise.name }

// reproduce runs the programs of the red cells in two lanes. Limiters in memory have one lane. The others have one of their
// own, because their redis-servers have the same port.
func reproduce(ctx context.Context, cells []cell) {
	var both sync.WaitGroup
	for _, inMemory := range []bool{true, false} {
		both.Go(func() {
			for i := range cells {
				if (cells[i].library.store == "memory") == inMemory {
					cells[i].reproduce(ctx)
				}
			}
		})
	}
	both.Wait()
}

// reproduce runs the program of a red cell. A cell that its program does not confirm is tried again, because a busy machine
// is no library's fault. If it stays red it is an error: nothing is called broken that only one program has seen.
func (c *cell) reproduce(ctx context.Context) {
	for tries := 0; c.colour == red; tries++ {
		var err error
		if c.printed, err = runProgram(ctx, c.program(), c.library.store != "memory"); confirms(err) {
			return
		}
		if tries == 2 {
			c.verdict = verdict{"error", fmt.Sprintf("%s, and repro/%s does not confirm it: %v %s", c.what, c.program(), err, c.printed)}
			return
		}
		*c = try(c.library, c.promise)
	}
}

// confirms reports whether a program has seen what it looks for.
func confirms(err error) bool {
	exit := new(exec.ExitError)
	return errors.As(err, &exit) && exit.ExitCode() == 1
}

// runProgram builds and runs a program in repro, and returns the last line that it prints. Programs that start a server use
// its port alone.
func runProgram(ctx context.Context, name string, server bool) (line string, err error) {
	folder := "github.com/penstock-go/penstock/internal/lab/peers/repro/" + name
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var built string
	if strings.HasSuffix(name, "-clock") {
		built, err = buildSteppable(folder)
	} else {
		var dir string
		if dir, err = os.MkdirTemp("", "penstock-repro-"); err != nil {
			return "", err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		built = filepath.Join(dir, name)
		var out []byte
		if out, err = exec.CommandContext(ctx, "go", "build", "-o", built, folder).CombinedOutput(); err != nil {
			err = fmt.Errorf("go build: %v: %s", err, out) // not an ExitError, which would confirm the cell
		}
	}
	if err != nil {
		return "", err
	}
	if server {
		if err := portIsFree(ctx); err != nil {
			return "", err
		}
	}
	out, err := exec.CommandContext(ctx, built).CombinedOutput()
	lines := strings.Split(string(bytes.TrimSpace(out)), "\n")
	line = strings.ReplaceAll(lines[len(lines)-1], "<nil>", "") // errors that did not happen
	return strings.Join(strings.Fields(line), " "), err
}

// portIsFree waits for the end of the redis-server that another program has killed.
func portIsFree(ctx context.Context) error {
	for {
		l, err := net.Listen("tcp", "127.0.0.1:7399")
		if err == nil {
			return l.Close()
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// runStepped runs one of these programs for a reader.
func runStepped(ctx context.Context, name string) error {
	line, err := runProgram(ctx, filepath.Base(name), true)
	fmt.Println(line)
	return err
}
