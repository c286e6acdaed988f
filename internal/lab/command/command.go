// Package command has what the programs of the lab have in common.
package command

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
)

const product = "github.com/penstock-go/penstock"

// Main runs a program. An interrupt ends its context. After an error, Main prints it behind the program's name, and exits.
func Main(name string, run func(ctx context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	Exit(name, err)
}

// Exit ends the program called name with exit code 1 if there is an error.
func Exit(name string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Heap returns the bytes on the heap after garbage collection.
func Heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // frees memory that finalizers and pools kept
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// Product returns the directory of the module that the programs build and test. It asks the go command, so the working
// directory must be in the lab.
func Product(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", product).Output()
	if err != nil {
		return "", fmt.Errorf("go list -m %s: %w; run this in internal/lab", product, err)
	}
	return strings.TrimSpace(string(out)), nil
}
