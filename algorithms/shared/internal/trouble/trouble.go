// Package trouble says what errors of Redis and its client mean: why a call was not decided, whether
// Redis is to blame, and whether Redis may have executed something.
package trouble

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
)

// The reasons, as labels of metrics have them.
const (
	Unavailable   = "unavailable"
	Timeout       = "timeout"
	Overload      = "overload"
	Failover      = "failover"
	Capacity      = "capacity"
	Configuration = "configuration"
	Key           = "key"
	Cancelled     = "cancelled"
	Internal      = "internal"
)

// Reasons are all of them.
var Reasons = [...]string{Unavailable, Timeout, Overload, Failover, Capacity, Configuration, Key, Cancelled, Internal}

// A Trouble is the meaning of some errors to those who go on without a decision. It applies if its is,
// says, holds or has matches.
type Trouble struct {
	is    []error          // they wrap one of these
	says  []string         // the text of Redis or its client begins with one of these
	holds []string         // that text contains one of these
	has   func(error) bool // anything else

	Reason   string
	Effect   Effect
	Retry    bool   // sending again may succeed, and nothing was executed
	Executed bool   // a charge may have been made
	Fault    *Fault // the misconfiguration
}

// An Effect is what a round trip tells a circuit breaker.
type Effect uint8

const (
	// Success: Redis answered. An error that one caller or one key can
	// cause is no reason to bypass Redis for all others.
	Success Effect = iota
	// Failure: Redis is to blame.
	Failure
	// None: it says nothing about Redis.
	None
)

// unforeseen applies where the table has no row: to lost connections (EOF, reset,
// broken pipe), and to unknown texts.
var unforeseen = Trouble{Reason: Unavailable, Effect: Failure, Executed: true}

// troubles are tried in order, because an error may wrap several.
//
// The texts are those of Redis 7.0.15, or from the sources of the versions named
// beside them, without "ERR ".
var troubles = []Trouble{
	{is: []error{ErrMisconfigured}, Reason: Configuration, Effect: Failure},
	{is: []error{algorithms.ErrInvalid}, Reason: Internal, Effect: None},
	{is: []error{redis.ErrClosed}, Reason: Configuration, Effect: Failure, Fault: FaultClosed},

	// Before refused connections: other sentinels may be down.
	{is: []error{errMaster}, has: masterUnknown, Reason: Configuration, Effect: Failure, Fault: FaultMaster},

	// Before the contexts' errors: a dial may end with one, too, and has sent nothing.
	{is: []error{ErrOpen}, has: Dialing, Reason: Unavailable, Effect: Failure},
	{is: []error{ErrUnsent}, Reason: Timeout, Effect: Failure},
	{is: []error{ErrTimeout}, Reason: Timeout, Effect: Failure, Executed: true},
	{is: []error{context.Canceled, context.DeadlineExceeded}, Reason: Cancelled, Effect: None, Executed: true},

	{is: []error{ErrProcessLate}, Reason: Timeout, Effect: None}, // nothing was executed

	// The batches that fill the lane have failed already, and they count.
	{is: []error{ErrOverloaded}, Reason: Overload, Effect: None},
	{is: []error{redis.ErrPoolTimeout, redis.ErrPoolExhausted}, Reason: Overload, Effect: Failure},

	// A server that cannot serve now. It checks all of these before the first
	// write, so it executed nothing. A script that has written cannot be
	// killed.
	{says: []string{"LOADING ", "BUSY ", "MISCONF ", "NOREPLICAS ", "CLUSTERDOWN ", "Script killed by user"}, Reason: Unavailable, Effect: Failure},
	{says: []string{"READONLY "}, Reason: Failover, Effect: Failure, Retry: true},
	// One slot moves, and the master goes on serving its other slots.
	{says: []string{"TRYAGAIN "}, Reason: Failover, Retry: true},
	{says: []string{"MASTERDOWN "}, Reason: Failover, Effect: Failure},
	{says: []string{"OOM ", "max number of clients"}, Reason: Capacity, Effect: Failure},

	// The batch sends such a script whole.
	{says: []string{"NOSCRIPT "}, Reason: Internal, Retry: true},

	// A client for Redis Cluster follows MOVED and ASK. Another client sees them
	// for every call that belongs to another node. CROSSSLOT is never an answer to
	// a ClusterClient, because its scripts have keys of one slot only.
	{says: []string{"MOVED ", "ASK ", "CROSSSLOT "}, Reason: Configuration, Fault: FaultCluster},
	// A sentinel does not know the command CLUSTER.
	{says: []string{"This instance has cluster support disabled", "unknown command 'cluster'", "unknown command `cluster`"}, Reason: Configuration, Effect: Failure, Fault: FaultStandalone},
	{is: []error{ErrSentinel}, Reason: Configuration, Effect: Failure, Fault: FaultSentinel},
	{says: []string{"unknown command 'sentinel'", "unknown command `sentinel`"}, Reason: Configuration, Effect: Failure, Fault: FaultNoSentinel},

	{says: []string{"tls: first record does not look like a TLS handshake"}, Reason: Configuration, Effect: Failure, Fault: FaultPlaintext},
	// The client's own check, and the alerts of a server that refuses the client.
	{says: []string{"x509: ", "tls: certificate", "tls: bad certificate", "tls: unknown certificate", "tls: handshake failure", "tls: protocol version", "tls: either ServerName"}, Reason: Configuration, Effect: Failure, Fault: FaultCertificate},

	{says: []string{"NOAUTH "}, Reason: Configuration, Effect: Failure, Fault: FaultPassword},
	// The server says AUTH if it has no password configured.
	{says: []string{"WRONGPASS ", "AUTH "}, Reason: Configuration, Effect: Failure, Fault: FaultLogin},
	{says: []string{"DENIED "}, Reason: Configuration, Effect: Failure, Fault: FaultProtected},
	{says: []string{"NOPERM "}, Reason: Configuration, Effect: Failure, Fault: FaultPermission},
	// EVAL or EVALSHA is renamed, Valkey has no module for Lua, or Garnet has it off.
	{says: []string{"unknown command 'eval", "unknown command `eval", "Could not find scripting engine"}, holds: []string{"Lua scripting support disabled"}, Reason: Configuration, Effect: Failure, Fault: FaultScripting},
	{says: []string{"unknown command"}, Reason: Configuration, Effect: Failure, Fault: FaultCommand}, // renamed, or a proxy's
	// Inside the script: earlier commands of it may have written. Redis 7.2 says
	// ACL failure.
	{says: []string{"The user executing the script ", "ACL failure in script"}, Reason: Configuration, Effect: Failure, Executed: true, Fault: FaultPermission},
	// Each kind of server has its own words before these.
	{holds: []string{"command called from"}, Reason: Configuration, Effect: Failure, Executed: true, Fault: FaultCommand},

	// Redis works, but not for this script. Its commands before the failed one
	// may have written.
	{holds: []string{"attempted to access", "Attempted to access"}, Reason: Internal, Executed: true}, // a key of another slot
	{is: []error{ErrStoredKey}, Reason: Key},                                                          // the script reads before it writes
	{says: []string{"WRONGTYPE ", "value is not an integer", "increment or decrement would overflow"}, Reason: Key, Executed: true},
	{says: []string{"Error compiling script", "EXECABORT "}, Reason: Internal}, // EXECABORT: a proxy's transaction
	// Lua's own errors begin with user_script.
	{says: []string{"user_script:", "Error running script", "redis: nil", "redis: unexpected type"}, Reason: Internal, Executed: true},
	{is: []error{ErrReply}, Reason: Internal, Executed: true},

	// Last: several of the errors above say that they are timeouts, too.
	{has: timedOut, Reason: Timeout, Effect: Failure, Executed: true},
}

// Of looks an error up in the table.
func Of(err error) Trouble {
	if err == nil {
		return Trouble{}
	}
	texts := innermost(err)
	if i := slices.IndexFunc(troubles, func(t Trouble) bool { return t.matches(err, texts) }); i >= 0 {
		return troubles[i]
	}
	return unforeseen
}

func (t *Trouble) matches(err error, texts []string) bool {
	return slices.ContainsFunc(t.is, func(is error) bool { return errors.Is(err, is) }) ||
		slices.ContainsFunc(texts, t.inText) || t.has != nil && t.has(err)
}

func (t *Trouble) inText(text string) bool {
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
