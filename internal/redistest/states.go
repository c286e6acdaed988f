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

// These are the states of trouble that arguments alone do not produce. They are for servers without a password, and
// their methods belong to the goroutine that runs the test.

// A dump of this size is read for a minute at this pace, and the server looks up from it after every key.
const (
	dumpKeys    = 3000
	dumpBytes   = 1024 // of each value
	microsAKey  = 20_000
	fillScript  = "for i = 1, ARGV[1] do redis.call('SET', 'redistest:' .. i, ARGV[2]) end"
	endlessLoop = "EVAL 'while true do end' 0\r\n"
)

// RestartLoading saves the data and a good many keys named redistest:1, 2, ... more, and restarts the server. It
// returns while the server reads them: for about a minute, or until FinishLoading, it answers LOADING.
func (s *Server) RestartLoading() {
	s.tb.Helper()
	s.do("CONFIG", "SET", "rdbcompression", "no")
	s.do("EVAL", fillScript, 0, dumpKeys, strings.Repeat("x", dumpBytes))
	s.do("SAVE")
	s.Kill()
	err := s.runUntil(func(p *run) bool {
		// Somebody else who has the port might be loading, too.
		return strings.Contains(p.output(), "Loading RDB") && strings.HasPrefix(ping(s.Addr()), "-LOADING")
	}, "--key-load-delay", fmt.Sprint(microsAKey), "--loading-process-events-interval-bytes", fmt.Sprint(dumpBytes))
	if err != nil {
		s.tb.Fatalf("redistest: restart of %s: %v", s.Addr(), err)
	}
}

// FinishLoading lets the server finish what RestartLoading began, and returns when it serves.
func (s *Server) FinishLoading() {
	s.tb.Helper()
	s.do("CONFIG", "SET", "key-load-delay", 0)
	s.await("+PONG")
}

// StartScript starts a script that never ends: the server answers BUSY until KillScript.
func (s *Server) StartScript() {
	s.tb.Helper()
	s.do("CONFIG", "SET", "lua-time-limit", 1)
	conn, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		s.tb.Fatalf("redistest: %v", err)
	}
	defer conn.Close() // which does not end the script
	if _, err := conn.Write([]byte(endlessLoop)); err != nil {
		s.tb.Fatalf("redistest: %v", err)
	}
	s.await("-BUSY")
}

// KillScript ends the script of StartScript, and returns when the server serves again.
func (s *Server) KillScript() {
	s.tb.Helper()
	s.do("SCRIPT", "KILL")
	s.await("+PONG")
}

// BreakSaves makes a save fail, so that the server answers writes with MISCONF until MendSaves. What it has saved
// before is lost, and a restart before MendSaves fails the test.
func (s *Server) BreakSaves() {
	s.tb.Helper()
	if err := os.RemoveAll(s.dump()); err != nil {
		s.tb.Fatalf("redistest: %v", err)
	}
	// A file cannot take the place of a directory. Denied permissions would not impress a server that runs as root.
	if err := os.Mkdir(s.dump(), 0o700); err != nil {
		s.tb.Fatalf("redistest: %v", err)
	}
	s.do("CONFIG", "SET", "save", "3600 1") // servers that never save by themselves do not mind
	s.do("BGSAVE")
	s.await("-MISCONF")
}

// MendSaves undoes BreakSaves, and returns when the server has saved its data and takes writes again.
func (s *Server) MendSaves() {
	s.tb.Helper()
	if err := os.RemoveAll(s.dump()); err != nil {
		s.tb.Fatalf("redistest: %v", err)
	}
	s.do("BGSAVE")
	s.await("+PONG")
	s.do("CONFIG", "SET", "save", "")
}

func (s *Server) dump() string { return filepath.Join(s.dir, "dump.rdb") }

// do runs one command, and fails the test if it fails.
func (s *Server) do(args ...any) {
	s.tb.Helper()
	o := s.quiet()
	o.ReadTimeout = deadline // a busy machine takes its time
	client := redis.NewClient(o)
	defer client.Close()
	if err := client.Do(s.tb.Context(), args...).Err(); err != nil && err != redis.Nil {
		s.tb.Fatalf("redistest: %v on %s: %v", args[0], s.Addr(), err)
	}
}

// await waits until the server answers PING with a line that begins with prefix.
func (s *Server) await(prefix string) {
	s.tb.Helper()
	UntilEmpty(s.tb, fmt.Sprintf("%s answers %s to PING", s.Addr(), prefix), func() string {
		reply := ping(s.Addr())
		if strings.HasPrefix(reply, prefix) {
			return ""
		}
		return fmt.Sprintf("it answers %q", reply)
	})
}
