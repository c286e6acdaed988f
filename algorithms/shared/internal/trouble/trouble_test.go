// The rows of the table for errors, by their texts and by their types.

package trouble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
)

var errHint = errors.New("if this lasts, check that the server speaks TLS")

// textOf returns the table's row for an error: its reason, its effect on the circuit, and whether it allows a retry or
// was executed.
func textOf(err error) string {
	row := Of(err)
	words := []string{cmp.Or(row.Reason, "none"), [...]string{"success", "failure", "none"}[row.Effect]}
	if row.Retry {
		words = append(words, "retry")
	}
	if row.Executed {
		words = append(words, "executed")
	}
	return strings.Join(words, " ")
}

// said is an error of Redis. Go-redis has several types of them, and the table
// goes by their texts.
type said string

func (e said) Error() string { return string(e) }
func (said) RedisError()     {}

// texts are replies of Redis, also of versions that tests do not run against,
// and of its client.
var texts = []struct{ text, want string }{
	{"LOADING Redis is loading the dataset in memory", "unavailable failure"},
	{"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", "unavailable failure"},
	{"BUSY Redis is busy running a function. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.", "unavailable failure"},
	{"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that", "unavailable failure"},
	{"MISCONF Errors writing to the AOF file: No space left on device", "unavailable failure"},
	{"NOREPLICAS Not enough good replicas to write.", "unavailable failure"},
	{"CLUSTERDOWN The cluster is down", "unavailable failure"},
	{"CLUSTERDOWN Hash slot not served", "unavailable failure"},
	{"READONLY You can't write against a read only replica. script: f0, on @user_script:101.", "failover failure retry"},
	{"READONLY Can not run script with write flag on readonly replica", "failover failure retry"},
	{"ERR Error running script (call to f_f0a1): @user_script:101: @user_script: 101: -READONLY You can't write against a read only replica.", "failover failure retry"}, // 6.2
	{"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "failover failure"},
	{"TRYAGAIN Multiple keys request during rehashing of slot", "failover success retry"},
	{"OOM command not allowed when used memory > 'maxmemory'. script: f0, on @user_script:101.", "capacity failure"},
	{"OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'", "capacity failure"},
	{"ERR Error running script (call to f_f0a1): @user_script:101: @user_script: 101: -OOM command not allowed when used memory > 'maxmemory'.", "capacity failure"}, // 6.2
	{"ERR max number of clients reached", "capacity failure"},
	{"ERR max number of clients + cluster connections reached", "capacity failure"},
	{"ERR Script killed by user with SCRIPT KILL... script: f0, on @user_script:1.", "unavailable failure"},
	{"ERR Error running script (call to f_f0a1): @user_script:1: Script killed by user with SCRIPT KILL...", "unavailable failure"}, // 6.2
	{"NOSCRIPT No matching script. Please use EVAL.", "internal success retry"},
	{"MOVED 7629 127.0.0.1:17020", "configuration success"},
	{"ASK 7629 127.0.0.1:17020", "configuration success"},
	{"CROSSSLOT Keys in request don't hash to the same slot", "configuration success"},
	{"NOAUTH Authentication required.", "configuration failure"},
	{"NOAUTH HELLO must be called with the client already authenticated, otherwise", "configuration failure"},
	{"WRONGPASS invalid username-password pair or user is disabled.", "configuration failure"},
	{"ERR AUTH <password> called without any password configured for the default user. Are you sure", "configuration failure"},
	{"DENIED Redis is running in protected mode because protected mode is enabled and no password is set", "configuration failure"},
	{"NOPERM this user has no permissions to access one of the keys used as arguments", "configuration failure"},
	{"NOPERM User limiter has no permissions to run the 'evalsha' command", "configuration failure"}, // 7.2
	{"ERR unknown command 'EVALSHA', with args beginning with:", "configuration failure"},
	{"ERR unknown command `evalsha`, with args beginning with:", "configuration failure"},
	{"ERR The user executing the script can't run this command or subcommand script: f0, on @user_script:1.", "configuration failure executed"},
	{"@user_script: 1: The user executing the script can't run this command or subcommand", "configuration failure executed"}, // 6.2, by pcall
	{"ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: f0", "configuration failure executed"},
	{"ERR ACL failure in script: User limiter has no permissions to run the 'get' command script: f0, on @user_script:1.", "configuration failure executed"}, // 7.2
	{"ERR ACL failure in script: No permissions to access a key script: f0, on @user_script:1.", "configuration failure executed"},                           // 7.2
	{"ERR Unknown Redis command called from script script: f0, on @user_script:1.", "configuration failure executed"},
	{"ERR Unknown command called from script script: f0, on @user_script:1.", "configuration failure executed"},                                                    // Valkey
	{"ERR Unknown Redict command called from script script: f0, on @user_script:1.", "configuration failure executed"},                                             // Redict
	{"ERR Error running script (call to f_f0a1): @user_script:1: @user_script: 1: Unknown Redis command called from Lua script", "configuration failure executed"}, // 6.2, KeyDB
	{"@user_script: 1: Unknown Redis command called from Lua script", "configuration failure executed"},                                                            // 6.2, by pcall
	{"ERR unknown command 'eval', with args beginning with: 'return 1' '0' ", "configuration failure"},                                                             // renamed
	{"ERR Could not find scripting engine 'lua'", "configuration failure"},                                                                                         // Valkey 9.1 without its module
	{"ERR This instance has Lua scripting support disabled", "configuration failure"},                                                                              // Garnet
	{"ERR This instance has cluster support disabled", "configuration failure"},
	{"ERR unknown command `cluster`, with args beginning with: `slots`, ", "configuration failure"},                              // a sentinel
	{"ERR unknown command 'sentinel', with args beginning with: 'get-master-addr-by-name' 'mymaster' ", "configuration failure"}, // a server
	{"x509: certificate signed by unknown authority", "configuration failure"},
	{"tls: either ServerName or InsecureSkipVerify must be specified in the tls.Config", "configuration failure"},
	{"x509: certificate has expired or is not yet valid: current time 2026-11-22T20:00:00Z is after 2026-01-01T00:00:00Z", "configuration failure"},
	{"tls: first record does not look like a TLS handshake", "configuration failure"},
	{"tls: certificate required", "configuration failure"},
	{"tls: internal error", unforeseenText},
	{"ERR Script attempted to access a non local key in a cluster node script: f0, on @user_script:1.", "internal success executed"},
	{"ERR Error running script (call to f_f0a1): @user_script:1: @user_script: 1: Lua script attempted to access a non local key in a cluster node", "internal success executed"}, // 6.2, KeyDB
	{"ERR Attempted to access a non local key in a cluster node script: f0, on @user_script:1.", "internal success executed"},
	{"ERR Script attempted to access keys that do not hash to the same slot script: f0, on @user_script:1.", "internal success executed"}, // 7.2
	{"WRONGTYPE Operation against a key holding the wrong kind of value script: f0, on @user_script:1.", "key success executed"},
	{"WRONGTYPE Operation against a key holding the wrong kind of value", "key success executed"},
	{"ERR WRONGTYPE Operation against a key holding the wrong kind of value", "key success executed"}, // Kvrocks
	{"ERR value is not an integer or out of range script: f0, on @user_script:1.", "key success executed"},
	{"ERR increment or decrement would overflow script: f0, on @user_script:1.", "key success executed"},
	{"ERR user_script:1: attempt to compare nil with number script: f0, on @user_script:1.", "internal success executed"},
	{"ERR Error running script (call to f_f0a1): @user_script:1: user_script:1: attempt to compare nil with number", "internal success executed"}, // 6.2
	{"ERR Error running script, and nothing else", "internal success executed"},
	{"ERR Error compiling script (new function): user_script:1: '=' expected near 'x'", "internal success"},
	{"EXECABORT Transaction discarded because of previous errors.", "internal success"},
	{"redis: nil", "internal success executed"},
	{"redis: unexpected type=int64 for Slice", "internal success executed"},

	{"", unforeseenText},
	{"ERR ", unforeseenText},
	{"ERR Something of a version to come", unforeseenText},
	{"BUSYGROUP Consumer Group name already exists", unforeseenText},
	{"LOADINGS", unforeseenText},
	{"the text of another LOADING ", unforeseenText},
	{"redis: all ring shards are down", unforeseenText},
}

const unforeseenText = "unavailable failure executed"

// wrappings are how errors come to callers.
var wrappings = []struct {
	name string
	wrap func(error) error
}{
	{"bare", func(err error) error { return err }},
	{"wrapped", func(err error) error { return fmt.Errorf("shared: redis: %w", err) }},
	{"wrapped twice", func(err error) error { return fmt.Errorf("a: %w", fmt.Errorf("failed to authenticate: %w", err)) }},
	{"joined", func(err error) error { return errors.Join(errors.New("something else"), err) }},
	{"beside", func(err error) error { return fmt.Errorf("%w and %w", err, io.EOF) }},
}

func TestTroubleOfTexts(t *testing.T) {
	for _, tt := range texts {
		for _, w := range wrappings {
			for _, err := range []error{said(tt.text), errors.New(tt.text)} {
				if got := textOf(w.wrap(err)); got != tt.want {
					t.Errorf("%s %T %q: got %q, want %q", w.name, err, tt.text, got, tt.want)
				}
			}
		}
	}
}

func TestTroubleOfErrors(t *testing.T) {
	const noSentinel = "redis: all sentinels specified in configuration are unreachable: %w"
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	read := func(err error) error { return &net.OpError{Op: "read", Net: "tcp", Err: err} }
	storedKey := func(text string) error { return fmt.Errorf("%w: %w", ErrStoredKey, said(text)) }
	tests := []struct {
		err  error
		want string
	}{
		{algorithms.ErrInvalid, "internal none"},
		{algorithms.FixedWindow(0, 0).Validate(), "internal none"},
		{ErrOverloaded, "overload none"},
		{ErrOpen, "unavailable failure"},
		{ErrProcessLate, "timeout none"},
		{ErrTimeout, "timeout failure executed"},
		{ErrUnsent, "timeout failure"},
		{ErrReply, "internal success executed"},
		{context.Canceled, "cancelled none executed"},
		{context.DeadlineExceeded, "cancelled none executed"},
		{storedKey("WRONGTYPE Operation against a key holding the wrong kind of value"), "key success"},
		{storedKey("ERR anything"), "key success"},
		{storedKey("ERR The user executing the script can't run this command or subcommand"), "configuration failure executed"},
		{storedKey("ERR ACL failure in script: User x has no permissions to run the 'get' command"), "configuration failure executed"},

		{dial(syscall.ECONNREFUSED), "unavailable failure"},
		{dial(os.ErrDeadlineExceeded), "unavailable failure"},
		{dial(context.DeadlineExceeded), "unavailable failure"},
		{dial(fmt.Errorf("%w: %w", ErrTimeout, context.Canceled)), "unavailable failure"},
		{dial(&net.DNSError{Err: "no such host", IsTimeout: true}), "unavailable failure"},
		{read(os.ErrDeadlineExceeded), "timeout failure executed"},
		{os.ErrDeadlineExceeded, "timeout failure executed"},
		{read(syscall.ECONNRESET), unforeseenText},
		{&net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}, unforeseenText},
		{io.ErrUnexpectedEOF, unforeseenText},
		{redis.ErrPoolTimeout, "overload failure"},
		{redis.ErrPoolExhausted, "overload failure"},
		{redis.ErrClosed, "configuration failure"},
		{redis.ErrNoScript, "internal success retry"},
		{redis.ErrCrossSlot, "configuration success"},
		{redis.Nil, "internal success executed"},

		{fmt.Errorf(noSentinel, errors.Join(redis.Nil, redis.Nil, redis.Nil)), "configuration failure"},
		{fmt.Errorf(noSentinel, errors.Join(dial(syscall.ECONNREFUSED), redis.Nil)), "configuration failure"},
		{fmt.Errorf(noSentinel, dial(syscall.ECONNREFUSED)), "unavailable failure"},
		{ErrSentinel, "configuration failure"},
		{fmt.Errorf("%w (%w)", ErrTimeout, errHint), "timeout failure executed"},
		{fmt.Errorf("%w (%w)", ErrUnsent, errHint), "timeout failure"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, "configuration failure"},
	}
	for _, tt := range tests {
		for _, w := range wrappings {
			if got := textOf(w.wrap(tt.err)); got != tt.want {
				t.Errorf("%s %v: got %q, want %q", w.name, tt.err, got, tt.want)
			}
		}
	}
	if got := textOf(nil); got != "none success" {
		t.Errorf("nil: got %q, want %q", got, "none success")
	}
}

// An error text that no row of the table knows is a failure, whatever wraps it.
func FuzzTrouble(f *testing.F) {
	for _, tt := range texts {
		f.Add(tt.text)
	}
	known := make([]string, 0, len(texts))
	for _, tt := range texts {
		if tt.want != unforeseenText {
			known = append(known, firstWord(tt.text))
		}
	}
	for i := range troubles {
		known = append(known, troubles[i].holds...)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := textOf(said(text))
		for _, w := range wrappings {
			if again := textOf(w.wrap(said(text))); again != got {
				t.Errorf("%s %q: got %q, and %q bare", w.name, text, again, got)
			}
		}
		for _, k := range known {
			if strings.Contains(text, k) {
				return
			}
		}
		if got != unforeseenText {
			t.Errorf("%q: got %q, want %q", text, got, unforeseenText)
		}
	})
}

// firstWord returns the first word of a text, without which no row knows it.
func firstWord(text string) string {
	words := strings.FieldsFunc(strings.TrimPrefix(text, "ERR "), func(c rune) bool { return !unicode.IsLetter(c) && c != '_' })
	return words[0]
}
