// What errors mean: why a call was not decided, whether Redis is to blame, and
// whether Redis may have executed something.

package shared

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
)

// The reasons, as labels of metrics have them.
const (
	reasonUnavailable   = "unavailable"
	reasonTimeout       = "timeout"
	reasonOverload      = "overload"
	reasonFailover      = "failover"
	reasonCapacity      = "capacity"
	reasonConfiguration = "configuration"
	reasonKey           = "key"
	reasonCancelled     = "cancelled"
	reasonInternal      = "internal"
)

// Reason returns one word for metrics and logs, for an error of [Limiter.Allow]
// or [Limiter.Ready] or its cause:
//
//	unavailable    Redis cannot be reached or refuses; also unknown errors
//	timeout        no answer in time
//	overload       not sent: too many calls wait, or no connection was free
//	failover       a master changes, or slots of a Cluster move
//	capacity       Redis is out of memory or of connections
//	configuration  see ErrMisconfigured
//	key            a stored key is not a limiter's
//	cancelled      the caller's context has ended
//	internal       a fault of the program or this library
//
// Reason returns "" for nil.
func Reason(err error) string { return troubleOf(err).reason }

// A trouble is the meaning of some errors to the layers that go on without a
// decision. It applies if its is, says, holds or has matches.
type trouble struct {
	is    []error          // they wrap one of these
	says  []string         // the text of Redis or its client begins with one of these
	holds []string         // that text contains one of these
	has   func(error) bool // anything else

	reason   string
	effect   effect
	retry    bool   // sending again may succeed, and nothing was executed
	executed bool   // a charge may have been made
	fault    *fault // the misconfiguration
}

// An effect is what a round trip tells a circuit breaker.
type effect uint8

const (
	// effectSuccess: Redis answered. An error that one caller or one key can
	// cause is no reason to bypass Redis for all others.
	effectSuccess effect = iota
	// effectFailure: Redis is to blame.
	effectFailure
	// effectNone: it says nothing about Redis.
	effectNone
)

// unforeseen applies where the table has no row: to lost connections (EOF, reset,
// broken pipe), and to unknown texts.
var unforeseen = trouble{reason: reasonUnavailable, effect: effectFailure, executed: true}

// troubles are tried in order, because an error may wrap several.
//
// The texts are those of Redis 7.0.15, or from the sources of the versions named
// beside them, without "ERR ".
var troubles = []trouble{
	{is: []error{ErrMisconfigured}, reason: reasonConfiguration, effect: effectFailure},
	{is: []error{algorithms.ErrInvalid}, reason: reasonInternal, effect: effectNone},
	{is: []error{redis.ErrClosed}, reason: reasonConfiguration, effect: effectFailure, fault: faultClosed},

	// Before refused connections: other sentinels may be down.
	{is: []error{errMaster}, has: masterUnknown, reason: reasonConfiguration, effect: effectFailure, fault: faultMaster},

	// Before the contexts' errors: a dial may end with one, too, and has sent nothing.
	{is: []error{errOpen}, has: dialing, reason: reasonUnavailable, effect: effectFailure},
	{is: []error{errUnsent}, reason: reasonTimeout, effect: effectFailure},
	{is: []error{errTimeout}, reason: reasonTimeout, effect: effectFailure, executed: true},
	{is: []error{context.Canceled, context.DeadlineExceeded}, reason: reasonCancelled, effect: effectNone, executed: true},

	{is: []error{errProcessLate}, reason: reasonTimeout, effect: effectNone}, // nothing was executed

	// The batches that fill the lane have failed already, and they count.
	{is: []error{errOverloaded}, reason: reasonOverload, effect: effectNone},
	{is: []error{redis.ErrPoolTimeout, redis.ErrPoolExhausted}, reason: reasonOverload, effect: effectFailure},

	// A server that cannot serve now. It checks all of these before the first
	// write, so it executed nothing. A script that has written cannot be
	// killed.
	{says: []string{"LOADING ", "BUSY ", "MISCONF ", "NOREPLICAS ", "CLUSTERDOWN ", "Script killed by user"}, reason: reasonUnavailable, effect: effectFailure},
	{says: []string{"READONLY "}, reason: reasonFailover, effect: effectFailure, retry: true},
	// One slot moves, and the master goes on serving its other slots.
	{says: []string{"TRYAGAIN "}, reason: reasonFailover, retry: true},
	{says: []string{"MASTERDOWN "}, reason: reasonFailover, effect: effectFailure},
	{says: []string{"OOM ", "max number of clients"}, reason: reasonCapacity, effect: effectFailure},

	// The batch sends such a script whole.
	{says: []string{"NOSCRIPT "}, reason: reasonInternal, retry: true},

	// A client for Redis Cluster follows MOVED and ASK. Another client sees them
	// for every call that belongs to another node. CROSSSLOT is never an answer to
	// a ClusterClient, because its scripts have keys of one slot only.
	{says: []string{"MOVED ", "ASK ", "CROSSSLOT "}, reason: reasonConfiguration, fault: faultCluster},
	// A sentinel does not know the command CLUSTER.
	{says: []string{"This instance has cluster support disabled", "unknown command 'cluster'", "unknown command `cluster`"}, reason: reasonConfiguration, effect: effectFailure, fault: faultStandalone},
	{is: []error{errSentinel}, reason: reasonConfiguration, effect: effectFailure, fault: faultSentinel},
	{says: []string{"unknown command 'sentinel'", "unknown command `sentinel`"}, reason: reasonConfiguration, effect: effectFailure, fault: faultNoSentinel},

	{says: []string{"tls: first record does not look like a TLS handshake"}, reason: reasonConfiguration, effect: effectFailure, fault: faultPlaintext},
	// The client's own check, and the alerts of a server that refuses the client.
	{says: []string{"x509: ", "tls: certificate", "tls: bad certificate", "tls: unknown certificate", "tls: handshake failure", "tls: protocol version", "tls: either ServerName"}, reason: reasonConfiguration, effect: effectFailure, fault: faultCertificate},

	{says: []string{"NOAUTH "}, reason: reasonConfiguration, effect: effectFailure, fault: faultPassword},
	// The server says AUTH if it has no password configured.
	{says: []string{"WRONGPASS ", "AUTH "}, reason: reasonConfiguration, effect: effectFailure, fault: faultLogin},
	{says: []string{"DENIED "}, reason: reasonConfiguration, effect: effectFailure, fault: faultProtected},
	{says: []string{"NOPERM "}, reason: reasonConfiguration, effect: effectFailure, fault: faultPermission},
	// EVAL or EVALSHA is renamed, Valkey has no module for Lua, or Garnet has it off.
	{says: []string{"unknown command 'eval", "unknown command `eval", "Could not find scripting engine"}, holds: []string{"Lua scripting support disabled"}, reason: reasonConfiguration, effect: effectFailure, fault: faultScripting},
	{says: []string{"unknown command"}, reason: reasonConfiguration, effect: effectFailure, fault: faultCommand}, // renamed, or a proxy's
	// Inside the script: earlier commands of it may have written. Redis 7.2 says
	// ACL failure.
	{says: []string{"The user executing the script ", "ACL failure in script"}, reason: reasonConfiguration, effect: effectFailure, executed: true, fault: faultPermission},
	// Each kind of server has its own words before these.
	{holds: []string{"command called from"}, reason: reasonConfiguration, effect: effectFailure, executed: true, fault: faultCommand},

	// Redis works, but not for this script. Its commands before the failed one
	// may have written.
	{holds: []string{"attempted to access", "Attempted to access"}, reason: reasonInternal, executed: true}, // a key of another slot
	{is: []error{errStoredKey}, reason: reasonKey},                                                          // the script reads before it writes
	{says: []string{"WRONGTYPE ", "value is not an integer", "increment or decrement would overflow"}, reason: reasonKey, executed: true},
	{says: []string{"Error compiling script", "EXECABORT "}, reason: reasonInternal}, // EXECABORT: a proxy's transaction
	// Lua's own errors begin with user_script.
	{says: []string{"user_script:", "Error running script", "redis: nil", "redis: unexpected type"}, reason: reasonInternal, executed: true},
	{is: []error{errReply}, reason: reasonInternal, executed: true},

	// Last: several of the errors above say that they are timeouts, too.
	{has: timedOut, reason: reasonTimeout, effect: effectFailure, executed: true},
}

// dialing reports whether there was no connection yet.
func dialing(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// masterUnknown reports whether a sentinel answered that it has no master of the
// client's name. Go-redis then says that no sentinel can be reached.
func masterUnknown(err error) bool {
	return errors.Is(err, redis.Nil) && strings.Contains(strings.ToLower(err.Error()), "sentinels")
}

func timedOut(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// troubleOf looks an error up in the table.
func troubleOf(err error) trouble {
	if err == nil {
		return trouble{}
	}
	texts := innermost(err)
	for _, t := range troubles {
		if t.matches(err, texts) {
			return t
		}
	}
	return unforeseen
}

func (t *trouble) matches(err error, texts []string) bool {
	return slices.ContainsFunc(t.is, func(is error) bool { return errors.Is(err, is) }) ||
		slices.ContainsFunc(texts, t.inText) || t.has != nil && t.has(err)
}

func (t *trouble) inText(text string) bool {
	return slices.ContainsFunc(t.says, func(says string) bool { return strings.HasPrefix(text, says) }) ||
		slices.ContainsFunc(t.holds, func(part string) bool { return strings.Contains(text, part) })
}

// innermost returns the texts of the innermost errors that err wraps. Wrapping
// texts differ by client and version, and so do the ends of Redis's own texts.
// Only their beginnings are reliable.
func innermost(err error) (texts []string) {
	switch e := err.(type) {
	case nil:
		return nil
	case interface{ Unwrap() error }:
		texts = innermost(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, wrapped := range e.Unwrap() {
			texts = append(texts, innermost(wrapped)...)
		}
	}
	if texts != nil {
		return texts
	}
	return []string{preamble.ReplaceAllLiteralString(err.Error(), "")}
}

// preamble may stand before the text that matters: "ERR ", also of proxies and
// forks that put it before other codes, and in Redis 6.2 the place in the
// script, once or twice.
var preamble = regexp.MustCompile(`^(ERR Error running script \(call to f_[0-9a-f]*\): )?(@user_script: ?[0-9]+: )*-?(ERR )?`)

// A scriptError is an error that a reply of the script holds as text.
type scriptError string

func (e scriptError) Error() string { return string(e) }

// RedisError marks e as an error of Redis for go-redis's functions.
func (scriptError) RedisError() {}

// errStoredKey is wrapped, beside a scriptError, by errors of a single key.
var errStoredKey = errors.New("a stored key cannot be read")

// asTimeout returns err, wrapped in errTimeout if it is a context's. It is
// for contexts that no caller has ended.
func asTimeout(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", errTimeout, err)
	}
	return err
}
