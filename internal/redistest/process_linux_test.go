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

// TestDiesWithTestBinary ends test binaries that run servers, and wants the servers dead.
func TestDiesWithTestBinary(t *testing.T) {
	if end := os.Getenv("REDISTEST_END"); end != "" {
		hang(t, end)
	}
	for _, end := range []string{"kill", "panic", "panic elsewhere", "exit"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDiesWithTestBinary$", "-test.timeout=1m")
			cmd.Env = append(os.Environ(), "REDISTEST_END="+end, "TMPDIR="+t.TempDir())
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			pids := scanPIDs(t, out)
			if end == "kill" {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			_ = cmd.Wait()
			for _, pid := range pids {
				if !eventually(func() bool { return !exists(pid) }) {
					t.Errorf("redis-server %d outlived the test binary that started it", pid)
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		})
	}
}

// hang starts servers, one of them frozen and one in a loop, names them, and ends the test binary or waits to be killed.
func hang(t *testing.T, end string) {
	t.Helper()
	servers := []*Server{Start(t), Start(t), Start(t)}
	servers = append(servers, startSentinel(t, servers[0]))
	servers[1].Stop()
	servers[2].StartScript()
	line := "\nservers"
	for _, s := range servers {
		line += " " + strconv.Itoa(s.pid())
	}
	_, _ = os.Stdout.WriteString(line + "\n")
	switch end {
	case "panic":
		panic("on purpose")
	case "panic elsewhere":
		go panic("on purpose")
	case "exit":
		os.Exit(1)
	}
	select {}
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

// scanPIDs reads the line "servers <pid> <pid> ...".
func scanPIDs(t *testing.T, r io.Reader) (pids []int) {
	t.Helper()
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "servers ")
		if !ok {
			continue
		}
		for field := range strings.FieldsSeq(text) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
		return pids
	}
	t.Fatal("the test binary ended without a line that names its servers")
	return nil
}
