// A server in the memory of a test, for clients of go-redis in synctest bubbles.

package shared

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
	mu     sync.Mutex
	silent bool        // it reads, and answers nothing
	hungUp []time.Time // when the client closed a connection
}

func (s *pipeServer) setSilent(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = silent
}

func (s *pipeServer) isSilent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silent
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
	return clientOf(t, "127.0.0.1:1", func(o *redis.Options) {
		o.Dialer = func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go s.serve(far)
			return near, nil
		}
		if set != nil {
			set(o)
		}
	})
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
		if s.isSilent() {
			continue
		}
		reply := "+OK\r\n"
		switch strings.ToLower(command) {
		case "hello":
			reply = "-ERR unknown command\r\n"
		case "evalsha":
			reply = "-" + errAnswer.Error() + "\r\n"
		}
		if _, err := io.WriteString(conn, reply); err != nil {
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
