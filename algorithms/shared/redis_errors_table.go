// What the errors of Redis and its client mean, one row each.

package shared

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
)

// unforeseen applies where no row does: to lost connections (EOF, reset, broken
// pipe), and to texts that are not known.
var unforeseen = errorRow{reason: reasonUnavailable, effect: effectFailure, executed: true}

// errorRows are tried in order, because an error may wrap several.
//
// The texts are those of Redis 7.0.15, or from the sources of the versions named
// beside them, without "ERR ".
var errorRows = []errorRow{
	{is: algorithms.ErrInvalid, reason: reasonInternal, effect: effectNone},

	{is: errOpen, reason: reasonUnavailable, effect: effectFailure},

	// Before the contexts' errors: a dial may end with one, too, and has sent nothing.
	{has: dialing, reason: reasonUnavailable, effect: effectFailure},
	{is: errUnsent, reason: reasonTimeout, effect: effectFailure},
	{is: errTimeout, reason: reasonTimeout, effect: effectFailure, executed: true},
	{is: context.Canceled, reason: reasonCancelled, effect: effectNone, executed: true},
	{is: context.DeadlineExceeded, reason: reasonCancelled, effect: effectNone, executed: true},

	// The batches that fill the lane have failed already, and they count.
	{is: errOverloaded, reason: reasonOverload, effect: effectNone},
	{is: redis.ErrPoolTimeout, reason: reasonOverload, effect: effectFailure},
	{is: redis.ErrPoolExhausted, reason: reasonOverload, effect: effectFailure},
	{is: redis.ErrClosed, reason: reasonInternal, effect: effectNone},

	// A server that cannot serve now. It checks all of these before the first
	// write, so nothing was executed.
	{says: "LOADING ", reason: reasonUnavailable, effect: effectFailure},
	{says: "BUSY ", reason: reasonUnavailable, effect: effectFailure},
	{says: "MISCONF ", reason: reasonUnavailable, effect: effectFailure},
	{says: "NOREPLICAS ", reason: reasonUnavailable, effect: effectFailure},
	{says: "CLUSTERDOWN ", reason: reasonUnavailable, effect: effectFailure},
	{says: "READONLY ", reason: reasonFailover, effect: effectFailure, retry: true},
	{says: "MASTERDOWN ", reason: reasonFailover, effect: effectFailure},
	{says: "TRYAGAIN ", reason: reasonFailover, effect: effectFailure, retry: true},
	{says: "OOM ", reason: reasonCapacity, effect: effectFailure},
	{says: "max number of clients", reason: reasonCapacity, effect: effectFailure},
	{says: "Script killed by user", reason: reasonUnavailable, effect: effectFailure}, // a script that has written cannot be killed

	// The batch sends such a script whole.
	{says: "NOSCRIPT ", reason: reasonInternal, effect: effectSuccess, retry: true},

	// A client for Redis Cluster follows these. Another client sees them for
	// every call that belongs to another node.
	{says: "MOVED ", reason: reasonConfiguration, effect: effectSuccess, advice: adviceCluster},
	{says: "ASK ", reason: reasonConfiguration, effect: effectSuccess, advice: adviceCluster},
	// A script of a ClusterClient has keys of one slot only.
	{says: "CROSSSLOT ", reason: reasonConfiguration, effect: effectSuccess, advice: adviceCluster},

	{says: "NOAUTH ", reason: reasonConfiguration, effect: effectFailure, advice: advicePassword},
	{says: "WRONGPASS ", reason: reasonConfiguration, effect: effectFailure, advice: adviceLogin},
	{says: "AUTH ", reason: reasonConfiguration, effect: effectFailure, advice: adviceLogin}, // called without any password configured
	{says: "DENIED ", reason: reasonConfiguration, effect: effectFailure, advice: adviceProtected},
	{says: "NOPERM ", reason: reasonConfiguration, effect: effectFailure, advice: adviceRights},
	{says: "unknown command", reason: reasonConfiguration, effect: effectFailure, advice: adviceCommand}, // renamed, or a proxy's
	// Inside the script: earlier commands of it may have written.
	{says: "The user executing the script ", reason: reasonConfiguration, effect: effectFailure, executed: true, advice: adviceScript},
	{says: "ACL failure in script", reason: reasonConfiguration, effect: effectFailure, executed: true, advice: adviceScript}, // 7.2
	{says: "Unknown Redis command called from script", reason: reasonConfiguration, effect: effectFailure, executed: true, advice: adviceCommand},

	// Redis works, but not for this script. Its commands before the one that
	// failed may have written.
	{says: "Script attempted to access", reason: reasonInternal, executed: true}, // a key of another slot
	{is: errStoredKey, reason: reasonKey},                                        // the script reads before it writes
	{says: "WRONGTYPE ", reason: reasonKey, executed: true},
	{says: "value is not an integer", reason: reasonKey, executed: true},
	{says: "increment or decrement would overflow", reason: reasonKey, executed: true},
	{says: "user_script:", reason: reasonInternal, executed: true}, // Lua's own errors
	{says: "Error running script", reason: reasonInternal, executed: true},
	{says: "Error compiling script", reason: reasonInternal},
	{says: "EXECABORT ", reason: reasonInternal}, // a proxy's transaction
	{is: errReply, reason: reasonInternal, executed: true},
	{says: "redis: nil", reason: reasonInternal, executed: true},
	{says: "redis: unexpected type", reason: reasonInternal, executed: true},

	// Last: several of the errors above say that they are timeouts, too.
	{has: timedOut, reason: reasonTimeout, effect: effectFailure, executed: true},
}

const (
	adviceCluster   = "this is a node of Redis Cluster: use its client, redis.NewClusterClient"
	advicePassword  = "set the client's Password, and its Username if it has one"
	adviceLogin     = "check the client's Username and Password, and that the server has that user and has enabled it"
	adviceProtected = "the server accepts only local connections: give it a password, or turn its protected mode off"
	adviceRights    = "grant the client's user EVALSHA and EVAL (or load the script as package lua says) and the keys that begin with the limiter's prefix"
	adviceScript    = "grant the client's user the commands of the script, which package lua lists, and the keys that begin with the limiter's prefix"
	adviceCommand   = "the server, or a proxy before it, lacks a command: the limiter needs EVALSHA, EVAL and the commands that package lua lists"
)

// dialing reports whether there was no connection yet.
func dialing(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

func timedOut(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}
