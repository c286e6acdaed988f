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
	deadline = 10 * time.Second     // for anything that a healthy machine does in a blink
	interval = 2 * time.Millisecond // between two looks at whether it has happened
	attempts = 20                   // to start a server on a port that nobody takes first
)

var errPortTaken = errors.New("another process took the port")

// A kind is what sets one sort of server apart from the others.
type kind struct {
	bus  bool     // it has a port for the Cluster bus
	args []string // that come before all others
}

var (
	plain       = kind{}
	clusterNode = kind{bus: true}
)

// A Server is one redis-server on 127.0.0.1. Its methods may be called by any goroutine, except Restart, Stop and
// Continue, which may fail the test and so belong to the goroutine that runs it.
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
// test. It fails the test when there is no redis-server.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return start(tb, plain, args)
}

// start is Start for a server of any kind.
func start(tb testing.TB, kind kind, args []string) *Server {
	tb.Helper()
	path, err := program()
	if err != nil {
		tb.Fatalf("redistest: %v: run \"make tools\", or install the package redis-server (Debian, Ubuntu) or redis", err)
	}
	s := &Server{tb: tb, path: path, dir: tb.TempDir(), kind: kind, args: args}
	s.client = sync.OnceValue(func() *redis.Client {
		client := redis.NewClient(&redis.Options{Addr: s.Addr()})
		tb.Cleanup(func() { _ = client.Close() })
		return client
	})
	for range attempts {
		s.port, err = reservePort(tb, kind.bus)
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
	return s.runUntil(func(p *run) bool { return answers(s.Addr()) && s.isAnsweredBy(p) })
}

// isAnsweredBy reports whether p answers on the port of s, and not another process that has taken it. A server that
// shows its process to users with a password only is believed.
func (s *Server) isAnsweredBy(p *run) bool {
	client := s.quietClient()
	defer client.Close()
	info, err := client.Info(s.tb.Context(), "server").Result()
	if err != nil {
		return isRefusal(err)
	}
	return strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", p.pid()))
}

// isRefusal reports whether err is a reply of a server.
func isRefusal(err error) bool {
	var refusal redis.Error
	return errors.As(err, &refusal)
}

// runUntil launches the process, with further arguments, and waits until it is ready. A process that is not is ended.
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

// answers reports whether a Redis at addr answers a PING. A refusal, such as that for want of a password or of a
// primary, is an answer, unless it says that the server is not up yet.
func answers(addr string) bool {
	reply := ping(addr)
	return reply != "" && !strings.HasPrefix(reply, "-LOADING")
}

// ping returns the first line of the reply to a PING, or "" if there is none.
func ping(addr string) string { return reply(addr, "PING") }

// reply returns the first line of the reply to a command, or "" if there is none that is a status, an error or a text.
// It speaks the protocol itself, since a client would say more than the command, and tests count commands.
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

// Restart kills the server if it runs and starts it on the same port. It returns when the server serves again, without
// scripts, and without data except what an argument or the command SAVE made it keep. A Cluster node and a sentinel
// keep their places; see Cluster.WaitReady and Sentinel.WaitReady.
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
	if err := s.running().freeze(); err != nil {
		s.tb.Fatalf("redistest: %s: %v", s.Addr(), err)
	}
}

// Continue lets a stopped server go on.
func (s *Server) Continue() {
	s.tb.Helper()
	if err := s.running().signal(sigContinue); err != nil {
		s.tb.Fatalf("redistest: SIGCONT for %s: %v", s.Addr(), err)
	}
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
