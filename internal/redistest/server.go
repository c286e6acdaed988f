package redistest

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	deadline = 10 * time.Second     // for anything that a healthy machine does in a blink
	interval = 2 * time.Millisecond // between two looks at whether it has happened
	attempts = 20                   // to start a server on a port that nobody takes first
)

var errPortTaken = errors.New("somebody else took the port")

// A Server is one redis-server on 127.0.0.1. Its methods may be called by any goroutine, but for Restart, Stop and
// Continue, which may fail the test and so belong to the goroutine that runs it.
type Server struct {
	tb   testing.TB
	path string // of the program
	dir  string
	port int
	args []string // as the caller gave them

	mu   sync.Mutex
	proc *process

	client func() *redis.Client
}

// Start starts a server with the given extra arguments of redis-server, waits until it serves, and ends it with the
// test. It fails the test when there is no redis-server.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return start(tb, false, args)
}

// start is Start; with bus, the port of the Cluster bus is free, too.
func start(tb testing.TB, bus bool, args []string) *Server {
	tb.Helper()
	path, err := exec.LookPath(cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server"))
	if err != nil {
		tb.Fatalf("redistest: %v: run \"make tools\", or install the package redis-server (Debian, Ubuntu) or redis", err)
	}
	s := &Server{tb: tb, path: path, dir: tb.TempDir(), args: args}
	s.client = sync.OnceValue(func() *redis.Client {
		client := redis.NewClient(&redis.Options{Addr: s.Addr()})
		tb.Cleanup(func() { _ = client.Close() })
		return client
	})
	for range attempts {
		s.port, err = reservePort(tb, bus)
		if err != nil {
			break
		}
		if err = s.run(); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	tb.Cleanup(s.Kill)
	return s
}

// run launches the process and waits until it serves. A process that does not is ended.
func (s *Server) run() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := launch(s.path, s.dir, s.arguments())
	if err != nil {
		return err
	}
	if err := s.awaitReady(p); err != nil {
		return errors.Join(err, p.kill())
	}
	s.proc = p
	return nil
}

func (s *Server) arguments() []string {
	return slices.Concat([]string{
		"--port", strconv.Itoa(s.port),
		"--bind", "127.0.0.1",
		"--protected-mode", "no",
		"--dir", s.dir,
		"--save", "",
		"--appendonly", "no",
	}, s.args)
}

// awaitReady waits until p answers a PING. Somebody else may have taken the port and answer in its place, so p must
// also have logged that it is ready.
func (s *Server) awaitReady(p *process) error {
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(interval) {
		if p.ended() {
			log := p.output()
			if strings.Contains(log, "Failed listening on port") {
				return errPortTaken
			}
			return fmt.Errorf("redis-server ended at once:\n%s", log)
		}
		if strings.Contains(p.output(), "Ready to accept connections") && answers(s.Addr()) {
			return nil
		}
	}
	return fmt.Errorf("redis-server does not serve after %v:\n%s", deadline, p.output())
}

// answers reports whether a Redis at addr answers a PING. A refusal for want of a password is an answer.
// It speaks the protocol itself, since a client would say more than PING, and tests count commands.
func answers(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return false
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	reply, err := bufio.NewReader(conn).ReadString('\n')
	return err == nil && (reply == "+PONG\r\n" || strings.HasPrefix(reply, "-NOAUTH"))
}

// Addr returns host and port. They stay the same for the life of the Server.
func (s *Server) Addr() string { return address(s.port) }

// Client returns a client with go-redis's default options. All calls return the same one, and the end of the test
// closes it. A server with a password needs a client of the test's own.
func (s *Server) Client() *redis.Client { return s.client() }

// Kill ends the server as a crash would, and returns when it is gone. Killing a dead server does nothing.
func (s *Server) Kill() {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return
	}
	if err := s.proc.kill(); err != nil {
		s.tb.Errorf("redistest: %v", err)
		return
	}
	s.proc = nil
}

// Restart kills the server if it runs and starts it on the same port. It returns when the server serves again,
// without data and without scripts. A Cluster node keeps its place in the Cluster; see Cluster.WaitReady.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Kill()
	if err := s.run(); err != nil {
		s.tb.Fatalf("redistest: restart on %s: %v", s.Addr(), err)
	}
}

// Stop freezes the server: it accepts connections, but answers nothing until Continue. Kill and Restart end a
// frozen server, too.
func (s *Server) Stop() {
	s.tb.Helper()
	p := s.signal(syscall.SIGSTOP)
	if !eventually(func() bool { return stopped(p.cmd.Process.Pid) }) {
		s.tb.Fatalf("redistest: %s still runs %v after SIGSTOP", s.Addr(), deadline)
	}
}

// Continue lets a stopped server go on.
func (s *Server) Continue() {
	s.tb.Helper()
	s.signal(syscall.SIGCONT)
}

func (s *Server) signal(sig syscall.Signal) *process {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || s.proc.ended() {
		s.tb.Fatalf("redistest: %v for %s, which does not run", sig, s.Addr())
	}
	if err := s.proc.signal(sig); err != nil {
		s.tb.Fatalf("redistest: %v for %s: %v", sig, s.Addr(), err)
	}
	return s.proc
}

// eventually polls until ok holds, and reports whether it did before the deadline.
func eventually(ok func() bool) bool {
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(interval) {
		if ok() {
			return true
		}
	}
	return ok()
}
