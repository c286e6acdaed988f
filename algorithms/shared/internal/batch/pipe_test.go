// A server in the memory of a test, for clients of go-redis in synctest bubbles.

package batch

import (
	"bufio"
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A pipeServer is a server for a client in a synctest bubble. It answers scripts
// with an error of one key, and accepts everything else.
type pipeServer struct {
	managed bool // it speaks RESP3, and accepts CLIENT MAINT_NOTIFICATIONS

	mu     sync.Mutex
	silent bool        // it reads, and answers nothing
	push   string      // of RESP3; it stands before each answer to a script
	hungUp []time.Time // when the client closed a connection
}

// announce sets a push message, such as "MIGRATING 1 2", that comes before each
// answer to a script. Numbers are sent as numbers.
func (s *pipeServer) announce(message string) {
	words := strings.Fields(message)
	push := ">" + strconv.Itoa(len(words)) + "\r\n"
	for _, word := range words {
		if _, err := strconv.Atoi(word); err == nil {
			push += ":" + word + "\r\n"
			continue
		}
		push += "$" + strconv.Itoa(len(word)) + "\r\n" + word + "\r\n"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.push = push
}

func (s *pipeServer) setSilent(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = silent
}

// reply returns the answer to a command; "" if the server is silent.
func (s *pipeServer) reply(command string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch command := strings.ToLower(command); {
	case s.silent:
		return ""
	case command == "hello" && s.managed:
		return "%1\r\n+proto\r\n:3\r\n"
	case command == "hello":
		return "-ERR unknown command\r\n"
	case command == "evalsha":
		return s.push + "-" + errAnswer.Error() + "\r\n"
	default:
		return "+OK\r\n"
	}
}

// closed returns when the client closed connections, counted from an instant.
func (s *pipeServer) closed(since time.Time) (after []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.hungUp {
		after = append(after, at.Sub(since))
	}
	return after
}

// client returns a client with go-redis's default options, except the options that
// set changes.
func (s *pipeServer) client(t *testing.T, set func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{Addr: "127.0.0.1:1", Dialer: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		t.Cleanup(func() { _ = far.Close() }) // go-redis 9.22 forgets a connection whose handshake fails
		go s.serve(far)
		return turnConn{near, make(chan struct{}, 1)}, nil
	}}
	if set != nil {
		set(o)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A turnConn lets writers wait for each other in a channel. A pipe has a mutex for that, and while a goroutine
// waits for a mutex, the clock of its bubble stands still: then the deadline of the other writer never comes. Go-redis
// 9.22 writes to a connection in two goroutines when it moves one that is in use.
type turnConn struct {
	net.Conn
	turn chan struct{}
}

func (c turnConn) Write(b []byte) (int, error) {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	return c.Conn.Write(b)
}

func (s *pipeServer) serve(conn net.Conn) {
	defer func() {
		s.mu.Lock()
		s.hungUp = append(s.hungUp, time.Now())
		s.mu.Unlock()
	}()
	for r := bufio.NewReader(conn); ; {
		command, err := readCommand(r)
		if err != nil {
			return
		}
		if _, err := io.WriteString(conn, s.reply(command)); err != nil {
			return
		}
	}
}

// readCommand returns the first word of the next command.
func readCommand(r *bufio.Reader) (first string, err error) {
	number := func() (n int) {
		line, readErr := r.ReadString('\n')
		if err = readErr; err == nil {
			n, err = strconv.Atoi(strings.TrimSpace(line[1:]))
		}
		return n
	}
	for i, n := 0, number(); i < n && err == nil; i++ {
		word := make([]byte, number()+2)
		if _, readErr := io.ReadFull(r, word); readErr != nil {
			return "", readErr
		}
		if i == 0 {
			first = strings.TrimSpace(string(word))
		}
	}
	return first, err
}
