// The browser and the server of the tests.

package e2e

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

const (
	patience = time.Minute           // with a server; a busy machine is slow
	pause    = 20 * time.Millisecond // between two looks at a page
	looks    = 3000                  // at least a minute
)

// TestMain sets these for all tests.
var (
	scratch string          // a folder for files of the tests
	program string          // path of the example server
	browser context.Context // a browser without a page, for chromedp
)

func TestMain(m *testing.M) {
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "penstock-e2e")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	scratch, program = dir, filepath.Join(dir, "chi-server")
	if out, err := exec.Command("go", "build", "-C", "..", "-o", program, ".").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("go build: %w\n%s", err, out)
	}
	path, err := exec.LookPath(cmp.Or(os.Getenv("CHROMIUM"), "chromium"))
	if err != nil {
		return 0, fmt.Errorf("the tests need Chromium, run make test-e2e to install it: %w", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.UserDataDir(filepath.Join(dir, "profile")),
		chromedp.NoSandbox, // root has no sandbox, nor have most containers; the browser opens only our pages
	)
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	defer cancel()
	var end context.CancelFunc
	browser, end = chromedp.NewContext(allocator)
	defer end()
	if err := chromedp.Do(browser); err != nil {
		return 0, fmt.Errorf("%s does not start: %w", path, err)
	}
	return m.Run(), nil
}

// A server is a process of the example.
type server struct {
	url  string
	home string // path of the page that sends requests
	stop func() // wants exit code 0
}

// start starts the program on a free port. The end of the test stops it.
func start(t *testing.T, args ...string) *server {
	t.Helper()
	cmd := exec.Command(program, append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	var log, url string
	for url == "" && lines.Scan() {
		log += lines.Text() + "\n"
		_, rest, _ := strings.Cut(lines.Text(), "msg=listening url=")
		url, _, _ = strings.Cut(rest, " ")
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, stderr)
	}()
	stop := sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		stuck := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer stuck.Stop()
		<-drained // Wait would close the pipe
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server: %v", err)
		}
	})
	t.Cleanup(stop)
	if url == "" {
		t.Fatalf("the server does not listen:\n%s", log)
	}
	return &server{url, "/", stop}
}

// get returns the body of an answer.
func (s *server) get(t *testing.T, path string) string {
	t.Helper()
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(s.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: got %d and %v, want 200", path, response.StatusCode, err)
	}
	return string(body)
}
