// A model of Redis. It speaks the protocol, so that instances use the real
// client, and it decides by the real steps of package step.

package fleet

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/lua"
)

// A server is the model of a Redis. It is single-threaded, as Redis is.
type server struct {
	charged func(key string, units int64) // receives every change of the units of a key; called under mu

	mu        sync.Mutex // guards the fields below
	states    map[string]*stored
	knows     bool                 // the script
	instances map[string]time.Time // the census: when each announced itself
	forgotten time.Time            // when the census expires
	swept     time.Time
	scripts   int
}

// A stored is the state of one key.
type stored struct {
	state  step.State
	fullAt int64 // µs: when the state no longer matters
}

func newServer(charged func(key string, units int64)) *server {
	s := &server{charged: charged}
	s.lose()
	return s
}

// lose forgets everything, as a restart without persistence does.
func (s *server) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states, s.instances, s.knows = make(map[string]*stored), make(map[string]time.Time), false
}

// execute runs a command and returns its reply, as the protocol writes it.
func (s *server) execute(args []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.After(s.forgotten) {
		clear(s.instances)
	}
	switch name := strings.ToLower(args[0]); name {
	case "evalsha":
		if args[1] != lua.Digest || !s.knows { // the digest is empty if the batch has ended unsent
			return "-NOSCRIPT No matching script.\r\n"
		}
		return s.script(args[2:], now)
	case "eval":
		if args[1] != lua.Source() {
			return "+OK\r\n" // as an empty script does
		}
		s.knows = true
		return s.script(args[2:], now)
	case "time":
		seconds, µs := strconv.FormatInt(now.Unix(), 10), strconv.FormatInt(now.UnixMicro()%1e6, 10)
		return "*2\r\n" + bulk(seconds) + bulk(µs)
	case "zadd":
		s.instances[args[3]] = now
		return ":1\r\n"
	case "zremrangebyscore":
		oldest, _ := strconv.ParseInt(args[3], 10, 64)
		for id, at := range s.instances {
			if at.UnixMilli() <= oldest {
				delete(s.instances, id)
			}
		}
		return ":0\r\n"
	case "pexpire":
		ms, _ := strconv.Atoi(args[2])
		s.forgotten = now.Add(time.Duration(ms) * time.Millisecond)
		return ":1\r\n"
	case "zcard":
		return fmt.Sprintf(":%d\r\n", len(s.instances))
	case "zrem":
		delete(s.instances, args[2])
		return ":1\r\n"
	default: // also of HELLO: then the client speaks the older protocol
		return fmt.Sprintf("-ERR unknown command '%s'\r\n", name)
	}
}

// script decides the checks of a call of the script, whose arguments begin with
// the number of keys.
func (s *server) script(args []string, now time.Time) string {
	s.scripts++
	if now.Sub(s.swept) > time.Minute {
		s.swept = now
		for key, st := range s.states {
			if st.fullAt < now.UnixMicro() {
				delete(s.states, key)
			}
		}
	}
	n, _ := strconv.Atoi(args[0])
	run := script{server: s, now: now.UnixMicro(), keys: args[1 : n+1]}
	run.decide(args[n+1:])
	return bulk(string(run.reply))
}

// bulk returns a text as the protocol writes it.
func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// readCommand reads a command: an array of texts.
func readCommand(r *bufio.Reader) (args []string, err error) {
	n, err := readLength(r, '*')
	if err != nil {
		return nil, err
	}
	for range n {
		size, err := readLength(r, '$')
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		args = append(args, string(text[:size]))
	}
	return args, nil
}

func readLength(r *bufio.Reader, kind byte) (int, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("got %q, want a line that begins with %q", line, kind)
	}
	return strconv.Atoi(string(line[1 : len(line)-2]))
}
