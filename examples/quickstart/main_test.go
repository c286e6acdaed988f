// The test runs the program and exhausts its limit.

package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	address  = "127.0.0.1:8080" // in main.go
	patience = time.Minute
)

func TestQuickstart(t *testing.T) {
	url := "http://" + start(t) + "/"
	// The counter approximates a sliding window, and units come back meanwhile.
	for i := range 110 {
		status, header, body := get(t, url)
		if status == http.StatusTooManyRequests && i >= 100 {
			checkDenial(t, header, body)
			return
		}
		if status != http.StatusOK || body != "hello\n" {
			t.Fatalf("request %d: got %d and %q, want 200 and hello", i+1, status, body)
		}
	}
	t.Error("got 110 requests admitted, want 100 per minute")
}

func checkDenial(t *testing.T, header http.Header, body string) {
	t.Helper()
	for name, want := range map[string]string{
		"RateLimit-Policy": `"api";q=100;w=60`, "RateLimit-Limit": "100", "RateLimit-Remaining": "0",
		"Content-Type": "application/problem+json", "Cache-Control": "no-store",
	} {
		if got := header.Get(name); got != want {
			t.Errorf("got %s %q, want %q", name, got, want)
		}
	}
	// All 100 may be of a window that has just begun. Its end is 60 s away, and a unit comes back 0.6 s later.
	retry := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(retry); err != nil || seconds < 1 || seconds > 61 {
		t.Errorf("got Retry-After %q, want 1 to 61", retry)
	}
	if got, want := header.Get("RateLimit"), `"api";r=0;t=`+retry; got != want {
		t.Errorf("got RateLimit %q, want %q", got, want)
	}
	if !strings.Contains(body, `"violated-policies":["api"]`) {
		t.Errorf("got %s, want the name of the policy", body)
	}
}

// start builds and starts main.go with a free address, and returns the address.
func start(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := listener.Addr().String()
	listener.Close()

	source, err := os.ReadFile("main.go")
	if err != nil || strings.Count(string(source), address) != 1 {
		t.Fatalf("got error %v and\n%s\nwant %s once", err, source, address)
	}
	dir := t.TempDir()
	changed, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "quickstart")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(source), address, free, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", program, changed).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // t.Context has ended, and so has the program
	awaitListening(t, free)
	return free
}

func awaitListening(t *testing.T, address string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return
		}
	}
	t.Fatalf("the program does not listen on %s", address)
}

func get(t *testing.T, url string) (status int, header http.Header, body string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(content)
}
