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

// A dump is read for a minute at this pace, and the server looks up from it after every key.
type dump struct{ keys, bytes, microsAKey int } // bytes of each value

var (
	smallDump = dump{keys: 3000, bytes: 1 << 10, microsAKey: 20_000}
	largeDump = dump{keys: 80, bytes: 2 << 20, microsAKey: 750_000} // Redis 6.2 looks up every 2 MiB
)

const (
	readsKey    = "GET redistest:1" // KeyDB answers PING while it loads
	lookUpEvery = "loading-process-events-interval-bytes"
	fillScript  = "for i = 1, ARGV[1] do redis.call('SET', 'redistest:' .. i, ARGV[2]) end"
	endlessLoop = "EVAL 'while true do end' 0\r\n"
)

// RestartLoading saves the data and a good many keys named redistest:1, 2, ... more, and restarts the server. It
// returns while the server reads them: for about a minute, or until FinishLoading, it answers LOADING.
func (s *Server) RestartLoading() {
	s.tb.Helper()
	s.do("CONFIG", "SET", "rdbcompression", "no")
	d, more := largeDump, []string(nil)
	if s.hasSetting(lookUpEvery) {
		d = smallDump
		more = []string{"--" + lookUpEvery, fmt.Sprint(d.bytes)}
	}
	s.do("EVAL", fillScript, 0, d.keys, strings.Repeat("x", d.bytes))
	s.do("SAVE")
	s.Kill()
	err := s.runUntil(func(p *run) bool {
		// Another server on the port might be loading, too.
		return strings.HasPrefix(reply(s.Addr(), readsKey), "-LOADING") && s.isAnsweredBy(p)
	}, append(more, "--key-load-delay", fmt.Sprint(d.microsAKey))...)
	if err != nil {
		s.tb.Fatalf("redistest: restart of %s: %v", s.Addr(), err)
	}
}

// FinishLoading lets the server finish what RestartLoading began, and returns when it serves. Redis 6.2 cannot be told
// while it loads: it is restarted.
func (s *Server) FinishLoading() {
	s.tb.Helper()
	o := s.quiet()
	o.ReadTimeout = deadline // a busy machine takes its time
	client := redis.NewClient(o)
	defer client.Close()
	if client.ConfigSet(s.tb.Context(), "key-load-delay", "0").Err() != nil {
		s.Restart()
	}
	s.await(readsKey, "$")
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
	s.await("PING", "-BUSY")
}

// KillScript ends the script of StartScript, and returns when the server serves again.
func (s *Server) KillScript() {
	s.tb.Helper()
	s.do("SCRIPT", "KILL")
	s.await("PING", "+PONG")
}

// BreakSaves makes a save fail, so that the server answers writes with MISCONF until MendSaves. What it has saved
// before is lost, and a restart before MendSaves fails the test.
func (s *Server) BreakSaves() {
	s.tb.Helper()
	if err := os.RemoveAll(s.dumpFile()); err != nil {
		s.tb.Fatalf("redistest: %v", err)
	}
	// A file cannot take the place of a directory. Denied permissions would not impress a server that runs as root.
	if err := os.Mkdir(s.dumpFile(), 0o700); err != nil {
		s.tb.Fatalf("redistest: %v", err)
	}
	s.do("CONFIG", "SET", "save", "3600 1") // servers that never save by themselves do not mind
	s.do("BGSAVE")
	s.await("PING", "-MISCONF")
}

// MendSaves undoes BreakSaves, and returns when the server has saved its data and takes writes again.
func (s *Server) MendSaves() {
	s.tb.Helper()
	if err := os.RemoveAll(s.dumpFile()); err != nil {
		s.tb.Fatalf("redistest: %v", err)
	}
	s.do("BGSAVE")
	s.await("PING", "+PONG")
	s.do("CONFIG", "SET", "save", "")
}

func (s *Server) dumpFile() string { return filepath.Join(s.dir, "dump.rdb") }

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

// hasSetting reports whether the server knows a setting.
func (s *Server) hasSetting(name string) bool {
	s.tb.Helper()
	client := s.quietClient()
	defer client.Close()
	values, err := client.ConfigGet(s.tb.Context(), name).Result()
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
