// What stands in an adopter's go.sum.

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// adopters are programs, in the order of README's first table.
var adopters = []struct {
	name, program string
	modules       []string // all that go.sum may name; nil: any
}{
	{"one process, and no HTTP", `package main

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func main() {
	_, _ = algorithms.Allow(context.Background(), algorithms.NewMemory(nil), "ip=192.0.2.1", algorithms.TokenBucket(1, time.Second))
}
`, []string{root}},
	{"an HTTP service", `package main

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

func main() {
	ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{Name: "api", Limit: algorithms.TokenBucket(1, time.Second)}))
}
`, []string{root, "github.com/go-chi/chi/v5"}},
	{"several replicas", `package main

import (
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

func main() {
	limiter := ratelimit.Must(shared.New(redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"}), nil))
	ratelimit.Must(ratelimit.New(limiter, nil, ratelimit.Policy{Name: "api", Limit: algorithms.TokenBucket(1, time.Second)}))
}
`, nil},
}

// TestAdopterSum: go mod tidy also reads the tests of the packages that a program imports. A program that limits in memory gets
// at most two lines for each module that it compiles, and README's figures are those of each program.
func TestAdopterSum(t *testing.T) {
	dir := t.TempDir()
	p, err := newProxy("../..", dir, "v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range adopters {
		lines := sumOf(t, filepath.Join(dir, fmt.Sprint("adopter", i)), p.env, a.program)
		for _, line := range lines {
			if module, _, _ := strings.Cut(line, " "); a.modules != nil && !slices.Contains(a.modules, module) {
				t.Errorf("%s: go.sum names %s", a.name, module)
			}
		}
		if a.modules != nil && len(lines) > 4 {
			t.Errorf("%s: got %d lines in go.sum, want at most 4", a.name, len(lines))
		}
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(a.name) + ` \|.*\| (\d+) \|$`).FindSubmatch(readme)
		if row == nil || string(row[1]) != strconv.Itoa(len(lines)) {
			t.Errorf("%s: README says %q, and go.sum has %d lines", a.name, row, len(lines))
		}
	}
}

// sumOf returns the lines of a program's go.sum after go mod tidy.
func sumOf(t *testing.T, home string, env []string, program string) []string {
	t.Helper()
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "main.go"), []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"init example", "tidy"} {
		if out, err := output(home, env, "go", strings.Fields("mod "+command)...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	sum, err := os.ReadFile(filepath.Join(home, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(sum)), "\n")
}
