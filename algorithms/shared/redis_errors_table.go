package algorithms

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"
)

// unforeseen applies where no row does: to lost connections (EOF, reset, broken
// pipe), and to texts that nobody has met.
var unforeseen = row{class: ErrorUnavailable, effect: effectFailure, executed: true}

// troubles are tried in order: an error may wrap several.
//
// Texts were seen of Redis 7.0.15, or are from the sources of the versions
// named beside them. "ERR " is cut off them.
var troubles = []row{
	{is: ErrInvalid, class: ErrorInternal, effect: effectNone},

	{is: errOpen, class: ErrorUnavailable, effect: effectFailure},

	// Before the contexts' errors: a dial ends with one, too, and has sent nothing.
	{has: dialing, class: ErrorUnavailable, effect: effectFailure},
	{is: errUnsent, class: ErrorTimeout, effect: effectFailure},
	{is: errTimeout, class: ErrorTimeout, effect: effectFailure, executed: true},
	{is: context.Canceled, class: ErrorCancelled, effect: effectNone, executed: true},
	{is: context.DeadlineExceeded, class: ErrorCancelled, effect: effectNone, executed: true},

	// What fills the lane has failed already, and that counts.
	{is: ErrOverloaded, class: ErrorOverload, effect: effectNone},
	{is: redis.ErrPoolTimeout, class: ErrorOverload, effect: effectFailure},
	{is: redis.ErrPoolExhausted, class: ErrorOverload, effect: effectFailure},
	{is: redis.ErrClosed, class: ErrorInternal, effect: effectNone},

	// A server that is not of use for now. It checks all of these before the
	// first write, so nothing was executed.
	{says: "LOADING ", class: ErrorUnavailable, effect: effectFailure},
	{says: "BUSY ", class: ErrorUnavailable, effect: effectFailure},
	{says: "MISCONF ", class: ErrorUnavailable, effect: effectFailure},
	{says: "NOREPLICAS ", class: ErrorUnavailable, effect: effectFailure},
	{says: "CLUSTERDOWN ", class: ErrorUnavailable, effect: effectFailure},
	{says: "READONLY ", class: ErrorFailover, effect: effectFailure, retry: true},
	{says: "MASTERDOWN ", class: ErrorFailover, effect: effectFailure},
	{says: "TRYAGAIN ", class: ErrorFailover, effect: effectFailure, retry: true},
	{says: "OOM ", class: ErrorCapacity, effect: effectFailure},
	{says: "max number of clients", class: ErrorCapacity, effect: effectFailure},
	{says: "Script killed by user", class: ErrorUnavailable, effect: effectFailure}, // one that has written cannot be

	// The batch sends such a script whole.
	{says: "NOSCRIPT ", class: ErrorInternal, effect: effectSuccess, retry: true},

	// A client for Redis Cluster follows these; one that is not sees them of
	// every call that goes to another node.
	{says: "MOVED ", class: ErrorConfiguration, effect: effectSuccess, advice: adviceCluster},
	{says: "ASK ", class: ErrorConfiguration, effect: effectSuccess, advice: adviceCluster},
	// No key can cause it: all of a principal share a slot. Allow hides the first.
	{says: "CROSSSLOT ", class: ErrorConfiguration, effect: effectSuccess, advice: adviceCluster},

	{says: "NOAUTH ", class: ErrorConfiguration, effect: effectFailure, advice: advicePassword},
	{says: "WRONGPASS ", class: ErrorConfiguration, effect: effectFailure, advice: adviceLogin},
	{says: "AUTH ", class: ErrorConfiguration, effect: effectFailure, advice: adviceLogin}, // called without any password configured
	{says: "DENIED ", class: ErrorConfiguration, effect: effectFailure, advice: adviceProtected},
	{says: "NOPERM ", class: ErrorConfiguration, effect: effectFailure, advice: adviceRights},
	{says: "unknown command", class: ErrorConfiguration, effect: effectFailure, advice: adviceCommand}, // renamed, or a proxy's
	// Inside the script: earlier commands of it may have written.
	{says: "The user executing the script ", class: ErrorConfiguration, effect: effectFailure, executed: true, advice: adviceScript},
	{says: "ACL failure in script", class: ErrorConfiguration, effect: effectFailure, executed: true, advice: adviceScript}, // 7.2
	{says: "Unknown Redis command called from script", class: ErrorConfiguration, effect: effectFailure, executed: true, advice: adviceCommand},

	// Redis works, but not for this. Commands of the script before the one
	// that failed may have written.
	{says: "Script attempted to access", class: ErrorInternal, executed: true}, // a key of another slot
	{is: errStoredKey, class: ErrorKey},                                        // the script reads before it writes
	{says: "WRONGTYPE ", class: ErrorKey, executed: true},
	{says: "value is not an integer", class: ErrorKey, executed: true},
	{says: "increment or decrement would overflow", class: ErrorKey, executed: true},
	{says: "user_script:", class: ErrorInternal, executed: true}, // Lua's own errors
	{says: "Error running script", class: ErrorInternal, executed: true},
	{says: "Error compiling script", class: ErrorInternal},
	{says: "EXECABORT ", class: ErrorInternal}, // a proxy's transaction
	{is: errReply, class: ErrorInternal, executed: true},
	{says: "redis: nil", class: ErrorInternal, executed: true},
	{says: "redis: unexpected type", class: ErrorInternal, executed: true},

	// Last: several of the errors above say that they are timeouts, too.
	{has: timedOut, class: ErrorTimeout, effect: effectFailure, executed: true},
}

const (
	adviceCluster   = "this is a node of Redis Cluster: use a client for it, redis.NewClusterClient"
	advicePassword  = "set the client's Password, and its Username if it has one"
	adviceLogin     = "check the client's Username and Password, and that the server has that user and it is on"
	adviceProtected = "the server takes only local connections: give it a password, or turn its protected mode off"
	adviceRights    = "grant the client's user evalsha and eval, or load the script as package lua says, and the keys that begin with the limiter's prefix"
	adviceScript    = "grant the client's user the commands of the script, which package lua lists, and the keys that begin with the limiter's prefix"
	adviceCommand   = "the server, or a proxy before it, lacks a command: the limiter needs evalsha, eval, and those that package lua lists"
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
