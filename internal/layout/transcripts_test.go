// README's transcripts are what its programs print, and the snippets of documents are
// code of this repository.

package layout

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/longtest"
)

const port8080 = "127.0.0.1:8080" // of both programs

// README starts two programs in turn. The commands after each
// start belong to its program.
var programs = []struct {
	start, dir string
	args       []string // besides the address
}{
	{"`go run ./examples/quickstart`", "quickstart", nil},
	{"run `make run`", "chi-server", []string{"-addr"}},
}

func TestReadmeTranscripts(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Fatalf("make test-long installs curl: %v", err)
	}
	readme := string(read(t, "../../README.md"))
	for i, p := range programs {
		_, rest, found := strings.Cut(readme, p.start)
		if !found {
			t.Fatalf("README.md does not say %s", p.start)
		}
		if i+1 < len(programs) {
			rest, _, _ = strings.Cut(rest, programs[i+1].start)
		}
		t.Run(p.dir, func(t *testing.T) {
			t.Parallel()
			address := serve(t, p.dir, p.args)
			commands := slices.DeleteFunc(commandsOf(rest), func(c command) bool { return !strings.Contains(c.command, port8080) })
			if len(commands) < 2 {
				t.Errorf("README.md has %d commands for %s, want at least 2", len(commands), p.dir)
			}
			diff := differences(t, commands, address)
			for try := 1; try < 5 && diff != "" && p.dir == "quickstart"; try++ {
				diff = differences(t, commands, address) // a window of the counter ended meanwhile
			}
			if diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A command stands behind "$ ", and the lines below are its output.
type command struct{ command, output string }

func commandsOf(text string) (all []command) {
	console := false
	for line := range strings.Lines(text) {
		switch shell, ok := strings.CutPrefix(line, "$ "); {
		case strings.HasPrefix(line, "```"):
			console = strings.HasPrefix(line, "```console")
		case console && ok:
			all = append(all, command{command: strings.TrimSpace(shell)})
		case console && len(all) > 0:
			all[len(all)-1].output += line
		}
	}
	return all
}

// seconds differ from run to run.
var seconds = regexp.MustCompile(`(t=|Retry-After: )\d+`)

// differences runs commands, and returns how their output differs from README's.
func differences(t *testing.T, commands []command, address string) (diff string) {
	t.Helper()
	for _, c := range commands {
		shell := strings.ReplaceAll(c.command, port8080, address)
		out, err := exec.CommandContext(t.Context(), "sh", "-c", shell).CombinedOutput()
		got := strings.ReplaceAll(string(out), "\r", "")
		got, want := seconds.ReplaceAllString(got, "${1}n"), seconds.ReplaceAllString(c.output, "${1}n")
		if err != nil || strings.TrimSpace(got) != strings.TrimSpace(want) {
			diff += fmt.Sprintf("$ %s\ngot %v and\n%swant\n%s", c.command, err, got, want)
		}
	}
	return diff
}

// serve builds and starts a program of examples on a free address, and returns the
// address.
func serve(t *testing.T, dir string, args []string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	source := filepath.Join("../../examples", dir)
	if args == nil { // the address is in the program
		changed := filepath.Join(t.TempDir(), "main.go")
		text := strings.Replace(string(read(t, filepath.Join(source, "main.go"))), port8080, address, 1)
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		source = changed
	} else {
		source, args = "./"+source, append(args, address)
	}
	program := filepath.Join(t.TempDir(), dir)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // t.Context has ended, and so has the program
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return address
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not listen on %s: %v", dir, address, err)
		}
	}
}

// Lines may be indented in another way.
func TestSnippets(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	code.WriteString("\n")
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") {
			code.WriteString(unindented(string(read(t, path))))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for document, least := range map[string]int{"README.md": 2, "RECIPES.md": 20, "COMING_FROM.md": 14, "RUNBOOK.md": 0} {
		snippets := strings.Split(string(read(t, "../../"+document)), "```go\n")[1:]
		for _, s := range snippets {
			s, _, _ = strings.Cut(s, "```")
			if !strings.Contains(code.String(), "\n"+unindented(s)) {
				t.Errorf("no program or example has these lines of %s:\n%s", document, s)
			}
		}
		if len(snippets) < least {
			t.Errorf("%s has %d snippets, want %d", document, len(snippets), least)
		}
	}
}

func unindented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimLeft(line, "\t "))
	}
	return b.String()
}
