// An adopter's first minutes, with the module as a proxy serves it.

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const adopterTest = `package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

func TestLimit(t *testing.T) {
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
		Name: "api", Limit: algorithms.SlidingWindowLog(1, time.Minute),
	}))
	h := limited.Handler(http.NotFoundHandler())
	for _, want := range []int{404, 429} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != want {
			t.Errorf("got %d, want %d", w.Code, want)
		}
	}
}
`

const (
	sharedPackage = root + "/algorithms/shared"
	adopterRedis  = `package main

import (
	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/shared"
)

var _, _ = shared.New(redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"}), nil)
`
)

// ours are the modules that only our tests use.
var ours = []string{"alicebob/miniredis", "yuin/gopher-lua", "go.uber.org/goleak", "pgregory.net/rapid", "stretchr/testify"}

// TestAdopter: in an empty folder, README's commands and its program work, and so do go test and go vet. The adopter's go.sum
// names no module that only our tests use.
func TestAdopter(t *testing.T) {
	dir := t.TempDir()
	p, err := newProxy("../..", dir, "v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "example")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) {
		t.Helper()
		if out, err := output(home, p.env, "go", args...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindSubmatch(readme)
	get := regexp.MustCompile(`(?m)^\$ go (get \S+)`).FindSubmatch(readme)
	if program == nil || get == nil || !strings.Contains(string(readme), "`go get "+sharedPackage+"`") {
		t.Fatal("README.md has no program, or no go get")
	}
	run("mod", "init", "example")
	write("main.go", string(program[1]))
	run(strings.Fields(string(get[1]))...)
	run("build", "-o", filepath.Join(dir, "program"), ".")
	write("main_test.go", adopterTest)
	run("test", "./...")
	run("vet", "./...")
	run("get", sharedPackage)
	write("redis.go", adopterRedis)
	run("vet", "./...")
	run("mod", "verify")
	wantNone(t, filepath.Join(home, "go.sum"))
	run("mod", "tidy") // It adds the sums of what the tests of algorithms/shared use. No build needs them.
	wantNone(t, filepath.Join(home, "go.mod"))
}

// wantNone fails if a file does not have our module, or has one that only our tests use.
func wantNone(t *testing.T, name string) {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(content), root+" v0.1.0") {
		t.Fatalf("got %s, error %v, want our module in it", content, err)
	}
	for _, module := range ours {
		if strings.Contains(string(content), module) {
			t.Errorf("%s of the adopter names %s:\n%s", filepath.Base(name), module, content)
		}
	}
}
