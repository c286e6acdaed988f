package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	deadline = time.Minute // for steps that take milliseconds on a healthy machine
	attempts = 20          // to start a server on a free port before another process takes it
)

var errPortTaken = errors.New("another process took the port")

// A kind says how to start a server: a plain one, a Cluster node or a sentinel.
type kind struct {
	bus  bool     // it has a port for the Cluster bus
	args []string // come before all other arguments
}

// A Server is one redis-server on 127.0.0.1. Any goroutine may call its methods, except Restart, Stop and Continue: they
// may fail the test, so only the goroutine that runs the test may call them.
type Server struct {
	tb   testing.TB
	path string // of the program
	dir  string
	port int
	kind kind
	args []string // as the caller gave them

	mu   sync.Mutex
	proc *run

	client func() *redis.Client
}

// Start starts a server with the given extra arguments of redis-server, waits until it serves, and ends it with the
// test. When there is no redis-server, it fails the test, or skips it with -short.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return start(tb, kind{}, args)
}

// start is Start for a server of any kind.
func start(tb testing.TB, kind kind, args []string) *Server {
	tb.Helper()
	skipWithoutServer(tb)
	path, err := program()
	if err != nil {
		tb.Fatalf("redistest: %v: run \"make test\", or install the package redis-server (Debian, Ubuntu) or redis", err)
	}
	s := &Server{tb: tb, path: path, dir: tb.TempDir(), kind: kind, args: args}
	s.client = sync.OnceValue(func() *redis.Client {
		client := redis.NewClient(&redis.Options{Addr: s.Addr()})
		tb.Cleanup(func() { _ = client.Close() })
		return client
	})
	for range attempts {
		s.port = reservePort(tb, kind.bus)
		if err = s.run(); !errors.Is(err, errPortTaken) {
			break
		}
	}
	must(tb, err)
	tb.Cleanup(s.Kill)
	return s
}

// run launches the process and waits until it serves. It kills a process that does not serve.
func (s *Server) run() error {
	return s.runUntil(func(p *run) bool { return answers(s.Addr()) && s.isAnsweredBy(p) })
}

// isAnsweredBy reports whether p answers on the port of s, rather than another process that took the port. If the server
// refuses INFO, for example without a password, isAnsweredBy assumes that it is p.
func (s *Server) isAnsweredBy(p *run) bool {
	info, err := s.ask("INFO", "server").Text()
	var refusal redis.Error
	if err != nil {
		return errors.As(err, &refusal)
	}
	return strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", p.pid()))
}

// runUntil launches the process with further arguments, and waits until it is ready. It kills a process that does not
// become ready.
func (s *Server) runUntil(ready func(*run) bool, more ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := launch(s.path, s.dir, append(s.arguments(), more...))
	if err != nil {
		return err
	}
	if err := awaitReady(p, ready); err != nil {
		return errors.Join(err, p.kill())
	}
	s.proc = p
	return nil
}

func (s *Server) arguments() []string {
	return slices.Concat(s.kind.args, []string{
		"--port", strconv.Itoa(s.port),
		"--bind", "127.0.0.1",
		"--protected-mode", "no",
		"--dir", s.dir,
		"--save", "",
		"--appendonly", "no",
	}, s.args)
}

// awaitReady waits until p is ready.
func awaitReady(p *run, ready func(*run) bool) error {
	isReady := false
	poll(deadline, func() bool {
		isReady = !p.ended() && ready(p)
		return isReady || p.ended()
	})
	switch log := p.output(); {
	case isReady:
		return nil
	case !p.ended():
		return fmt.Errorf("redis-server is not ready after %v:\n%s", deadline, log)
	case strings.Contains(log, "Address already in use"):
		return errPortTaken
	default:
		return fmt.Errorf("redis-server ended at once:\n%s", log)
	}
}

// answers reports whether a Redis at addr answers a PING. An error such as NOAUTH or MASTERDOWN is an answer, except
// LOADING: that server is not up yet.
func answers(addr string) bool {
	line := reply(addr, "PING")
	return line != "" && !strings.HasPrefix(line, "-LOADING")
}

// reply returns the first line of the reply to a command. It returns "" if there is no reply, and if the reply is neither
// a status, nor an error, nor a text. It speaks the protocol itself: a client of go-redis sends further commands when it
// connects, and tests count commands.
func reply(addr, command string) string {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return ""
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return ""
	}
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		return ""
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.ContainsAny(line[:1], "+-$") {
		return ""
	}
	return line
}

// Addr returns host and port. They stay the same for the life of the Server.
func (s *Server) Addr() string { return address(s.port) }

// Client returns a client with go-redis's default options. All calls return the same one, and the end of the test
// closes it. For a server with a password, make a client in the test.
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

// Restart kills the server if it runs, starts it on the same port, and returns when it serves again. The scripts are
// gone. So is the data, except data that an argument or the command SAVE made the server keep. A Cluster node and a
// sentinel keep their configuration; see Cluster.WaitReady and Sentinel.WaitReady.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Kill()
	if err := s.run(); err != nil {
		s.tb.Fatalf("redistest: restart on %s: %v", s.Addr(), err)
	}
}

// Stop freezes the server until Continue: the system accepts connections, but the server answers nothing. Kill and
// Restart also end a frozen server.
func (s *Server) Stop() {
	s.tb.Helper()
	must(s.tb, s.running().freeze())
}

// Continue lets a stopped server go on.
func (s *Server) Continue() {
	s.tb.Helper()
	must(s.tb, s.running().signal(sigContinue))
}

// running returns the process. It fails the test if there is none.
func (s *Server) running() *run {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || s.proc.ended() {
		s.tb.Fatalf("redistest: %s does not run", s.Addr())
	}
	return s.proc
}
