package redistest

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// TestMain fails when a goroutine is left. The tests themselves look for processes that are left.
func TestMain(m *testing.M) {
	// Most tests wait for timeouts of servers and hardly compute, so more of them fit at once than there are cores.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func TestStartServesAndEnds(t *testing.T) {
	skipWithoutServer(t)
	t.Parallel()
	var addr string
	var pid int
	t.Run("serve", func(t *testing.T) {
		s := Start(t, "--maxmemory", "10mb")
		addr, pid = s.Addr(), s.pid()
		if got := s.Client().Ping(t.Context()).Val(); got != "PONG" {
			t.Errorf("PING: got %q, want PONG", got)
		}
		want := map[string]string{"maxmemory": "10485760", "save": "", "appendonly": "no"}
		for name, value := range want {
			if got := s.Client().ConfigGet(t.Context(), name).Val()[name]; got != value {
				t.Errorf("CONFIG GET %s: got %q, want %q", name, got, value)
			}
		}
		if first, second := s.Client(), s.Client(); first != second {
			t.Error("two calls of Client returned two clients")
		}
	})
	wantGone(t, pid, addr)
}

func TestServersAreApart(t *testing.T) {
	t.Parallel()
	a, b := Start(t), Start(t)
	if err := a.Client().Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := b.Client().Exists(t.Context(), "k").Val(); got != 0 {
		t.Error("a key of one server was found on the other")
	}
}

func TestRestartKeepsThePortAndForgetsTheRest(t *testing.T) {
	t.Parallel()
	s := Start(t)
	addr, pid := s.Addr(), s.pid()
	if err := s.Client().Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Restart()
	if s.Addr() != addr || s.pid() == pid {
		t.Errorf("got %s, pid %d; want %s and another pid than %d", s.Addr(), s.pid(), addr, pid)
	}
	if got, err := s.Client().Exists(t.Context(), "k").Result(); got != 0 || err != nil {
		t.Errorf("EXISTS: got %d, %v; want 0 and no error", got, err)
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	s := Start(t)
	pid := s.pid()
	s.Kill()
	s.Kill() // twice does no harm
	wantGone(t, pid, s.Addr())
	s.Restart()
	if err := s.Client().Ping(t.Context()).Err(); err != nil {
		t.Errorf("PING after Kill and Restart: %v", err)
	}
}

func TestStopAndContinue(t *testing.T) {
	t.Parallel()
	s := Start(t)
	client := redis.NewClient(s.quiet())
	defer client.Close()
	s.Stop()
	err := client.Ping(t.Context()).Err()
	if timeout := net.Error(nil); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("PING of a stopped server: got %v, want a timeout", err)
	}
	s.Continue()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("PING after Continue: %v", err)
	}
	s.Stop() // the end of the test ends a stopped server, too
}

func TestPasswordIsNoObstacle(t *testing.T) {
	t.Parallel()
	s := Start(t, "--requirepass", "secret")
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), Password: "secret"})
	defer client.Close()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

func TestClusterServesKeysOnAllNodes(t *testing.T) {
	t.Parallel()
	var addrs []string
	var pids []int
	t.Run("serve", func(t *testing.T) {
		began := time.Now()
		c := StartCluster(t)
		t.Logf("cluster ready after %v", time.Since(began).Round(time.Millisecond))
		addrs = c.Addrs()
		for _, node := range c.Nodes() {
			pids = append(pids, node.pid())
		}
		wantKeysOnAllNodes(t, c)

		c.Nodes()[1].Restart()
		c.WaitReady()
		wantKeysOnAllNodes(t, c)
	})
	for i, addr := range addrs {
		wantGone(t, pids[i], addr)
	}
}

func wantKeysOnAllNodes(t *testing.T, c *Cluster) {
	t.Helper()
	for i := range 300 {
		if err := c.Client().Set(t.Context(), "key-"+strconv.Itoa(i), i, 0).Err(); err != nil {
			t.Fatalf("SET: %v", err)
		}
	}
	for _, node := range c.Nodes() {
		if got, err := node.Client().DBSize(t.Context()).Result(); got < 50 || err != nil {
			t.Errorf("%s: got %d keys, %v; want about a third of 300", node.Addr(), got, err)
		}
	}
}

func TestLostRaceForAPort(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		args   []string
		offset int
	}{
		{"port", nil, 0},
		{"bus", []string{"--cluster-enabled", "yes"}, busOffset},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := Start(t)
			s.Kill()
			l, err := net.Listen("tcp", address(s.port+tt.offset))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			s.args = tt.args
			if err := s.run(); !errors.Is(err, errPortTaken) {
				t.Errorf("got %v, want %v", err, errPortTaken)
			}
		})
	}
}

func TestBadArgumentShowsTheLog(t *testing.T) {
	t.Parallel()
	s := Start(t)
	s.Kill()
	s.args = []string{"--no-such-setting", "1"}
	err := s.run()
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("got %v, want an error that quotes the log", err)
	}
}

// With -short it skips the test.
func TestMissingRedisServerFailsTheTest(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("REDIS_SERVER", "")
	fake := &fatalTB{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		Start(fake)
	}()
	<-done
	want := "make test"
	if testing.Short() {
		want = "left out by -short"
	}
	if !strings.Contains(fake.message, want) || strings.Contains(fake.message, "\n") {
		t.Errorf("got %q, want one line with %q", fake.message, want)
	}
}

// fatalTB is a testing.TB whose Fatalf and Skipf record the message and end the goroutine, but not the test.
type fatalTB struct {
	testing.TB
	message string
}

func (tb *fatalTB) Fatalf(format string, args ...any) {
	tb.message = strings.TrimSpace(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (tb *fatalTB) Skipf(format string, args ...any) { tb.Fatalf(format, args...) }

func wantGone(t *testing.T, pid int, addr string) {
	t.Helper()
	if exists(pid) {
		t.Errorf("redis-server %d is still there", pid)
	}
	if answers(addr) {
		t.Errorf("a Redis still answers on %s", addr)
	}
}

// exists reports whether the process is there. A zombie does not count.
func exists(pid int) bool {
	if pid == 0 {
		return true // the test failed before it knew the pid
	}
	if p, err := os.FindProcess(pid); err != nil || p.Signal(syscall.Signal(0)) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

func (s *Server) pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.pid()
}
