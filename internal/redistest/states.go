package redistest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// This file brings servers into states of trouble that arguments alone do not produce. The server must have no password.
// Only the goroutine that runs the test may call these methods.

// A dump is the data that a server loads for a minute: 3000 keys in 20 ms each, or 80 keys in 0.75 s each. The server
// answers other clients after every key.
type dump struct{ keys, bytes, microsAKey int } // bytes of each value

var (
	smallDump = dump{keys: 3000, bytes: 1 << 10, microsAKey: 20_000}
	largeDump = dump{keys: 80, bytes: 2 << 20, microsAKey: 750_000} // Redis 6.2 answers clients every 2 MiB only
)

const (
	readsKey    = "GET redistest:1" // KeyDB answers PING while it loads
	answerEvery = "loading-process-events-interval-bytes"
	fillScript  = "for i = 1, ARGV[1] do redis.call('SET', 'redistest:' .. i, ARGV[2]) end"
	endlessLoop = "EVAL 'while true do end' 0\r\n"
)

// RestartLoading adds many keys named redistest:1, redistest:2 and so on, saves all data, and restarts the server. It
// returns while the server loads the data. The server answers LOADING for about a minute, or until FinishLoading.
func (s *Server) RestartLoading() {
	s.tb.Helper()
	s.do("CONFIG", "SET", "rdbcompression", "no")
	d, more := largeDump, []string(nil)
	if s.hasSetting(answerEvery) {
		d = smallDump
		more = []string{"--" + answerEvery, fmt.Sprint(d.bytes)}
	}
	s.do("EVAL", fillScript, 0, d.keys, strings.Repeat("x", d.bytes))
	s.do("SAVE")
	s.Kill()
	err := s.runUntil(func(p *run) bool {
		// Another process that took the port may be loading, too.
		return strings.HasPrefix(reply(s.Addr(), readsKey), "-LOADING") && s.isAnsweredBy(p)
	}, append(more, "--key-load-delay", fmt.Sprint(d.microsAKey))...)
	if err != nil {
		s.tb.Fatalf("redistest: restart of %s: %v", s.Addr(), err)
	}
}

// FinishLoading ends the slow loading that RestartLoading began, and returns when the server serves. Redis 6.2 accepts no
// CONFIG SET while it loads, so FinishLoading restarts it.
func (s *Server) FinishLoading() {
	s.tb.Helper()
	if s.askFor(deadline, "CONFIG", "SET", "key-load-delay", 0).Err() != nil {
		s.Restart()
	}
	s.await(readsKey, "$")
}

// StartScript starts a script that never ends: the server answers BUSY until KillScript.
func (s *Server) StartScript() {
	s.tb.Helper()
	s.do("CONFIG", "SET", "lua-time-limit", 1)
	conn, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	must(s.tb, err)
	defer conn.Close() // does not end the script
	_, err = conn.Write([]byte(endlessLoop))
	must(s.tb, err)
	s.await("PING", "-BUSY")
}

// KillScript ends the script of StartScript, and returns when the server serves again.
func (s *Server) KillScript() {
	s.tb.Helper()
	s.do("SCRIPT", "KILL")
	s.await("PING", "+PONG")
}

// BreakSaves makes a save fail, so that the server answers writes with MISCONF from then on. Data that the server saved
// before is lost, and a restart fails the test.
func (s *Server) BreakSaves() {
	s.tb.Helper()
	must(s.tb, os.RemoveAll(s.dumpFile()))
	// A file cannot replace a directory. Missing permissions would not stop a server that runs as root.
	must(s.tb, os.Mkdir(s.dumpFile(), 0o700))
	s.do("CONFIG", "SET", "save", "3600 1") // without save points, the server ignores a failed save
	s.do("BGSAVE")
	s.await("PING", "-MISCONF")
}

func (s *Server) dumpFile() string { return filepath.Join(s.dir, "dump.rdb") }

// do runs one command, and fails the test if it fails.
func (s *Server) do(args ...any) {
	s.tb.Helper()
	if err := s.askFor(deadline, args...).Err(); err != nil && err != redis.Nil {
		s.tb.Fatalf("redistest: %v on %s: %v", args[0], s.Addr(), err)
	}
}

// hasSetting reports whether the server knows a setting.
func (s *Server) hasSetting(name string) bool {
	s.tb.Helper()
	values, err := s.ask("CONFIG", "GET", name).Slice()
	if err != nil {
		s.tb.Fatalf("redistest: CONFIG GET %s on %s: %v", name, s.Addr(), err)
	}
	return len(values) > 0
}

// await waits until the server answers a command with a line that begins with prefix.
func (s *Server) await(command, prefix string) {
	s.tb.Helper()
	UntilEmpty(s.tb, fmt.Sprintf("%s answers %s to %s", s.Addr(), prefix, command), func() string {
		line := reply(s.Addr(), command)
		if strings.HasPrefix(line, prefix) {
			return ""
		}
		return fmt.Sprintf("it answers %q", line)
	})
}
