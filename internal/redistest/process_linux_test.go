package redistest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestDiesWithTestBinary kills a test binary that runs a server, and wants the server dead.
func TestDiesWithTestBinary(t *testing.T) {
	if os.Getenv("REDISTEST_HANG") != "" {
		s := Start(t)
		_, _ = os.Stdout.WriteString("\nserver " + strconv.Itoa(s.pid()) + "\n")
		select {}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDiesWithTestBinary$", "-test.timeout=1m")
	cmd.Env = append(os.Environ(), "REDISTEST_HANG=1", "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := scanPID(t, out)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !eventually(func() bool { return !exists(pid) }) {
		t.Errorf("redis-server %d outlived the test binary that started it", pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// The main goroutine keeps the main thread to itself, since that one never ends: the test below needs a thread that does.
func init() { runtime.LockOSThread() }

// TestOutlivesTheStartingThread starts a server from a thread that ends at once, and wants the server alive.
func TestOutlivesTheStartingThread(t *testing.T) {
	t.Parallel()
	tid := 0
	started := make(chan *Server)
	go func() {
		runtime.LockOSThread() // and no unlock: the thread ends with the goroutine
		tid = syscall.Gettid()
		started <- Start(t)
	}()
	s := <-started
	if !eventually(func() bool { _, err := os.Stat("/proc/self/task/" + strconv.Itoa(tid)); return err != nil }) {
		t.Fatal("the starting thread did not end")
	}
	if err := s.Client().Ping(t.Context()).Err(); err != nil {
		t.Errorf("PING: %v", err)
	}
}

// scanPID reads the line "server <pid>".
func scanPID(t *testing.T, r io.Reader) int {
	t.Helper()
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "server "); ok {
			pid, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("the test binary ended without a line that names its server")
	return 0
}
