// Misconfigurations between the client and the server, and their remedies.

package shared

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ErrMisconfigured is wrapped by errors of [Limiter.Ready] that will not
// resolve themselves. End the program:
//
//	if err := limiter.Ready(ctx); errors.Is(err, shared.ErrMisconfigured) {
//		log.Fatal(err)
//	}
var ErrMisconfigured = errors.New("redis is misconfigured")

// A Misconfiguration is an error of [Limiter.Ready] that wraps
// [ErrMisconfigured].
type Misconfiguration struct {
	// Fault is cluster, standalone, sentinel, nosentinel, master, plaintext,
	// certificate, password, login, protected, permission, command, scripting or
	// closed; see RUNBOOK.md.
	Fault string

	Cause  error  // what the server or the client said
	Advice string // what to do, for users of go-redis
}

func (m *Misconfiguration) Error() string {
	return fmt.Sprintf("shared: %v: %v (%s)", ErrMisconfigured, m.Cause, m.Advice)
}

// Unwrap returns ErrMisconfigured and the cause.
func (m *Misconfiguration) Unwrap() []error { return []error{ErrMisconfigured, m.Cause} }

// A fault is a kind of misconfiguration.
type fault struct{ name, advice string }

var (
	faultCluster     = &fault{"cluster", "the server is a node of a Redis Cluster: use redis.NewClusterClient"}
	faultStandalone  = &fault{"standalone", "the server is not in a Redis Cluster: use redis.NewClient, or redis.NewFailoverClient for Sentinel"}
	faultSentinel    = &fault{"sentinel", "use redis.NewFailoverClient with its address in SentinelAddrs, and the MasterName"}
	faultNoSentinel  = &fault{"nosentinel", "put the addresses of Sentinels, often with port 26379, into the client's SentinelAddrs, or use redis.NewClient"}
	faultMaster      = &fault{"master", "check the client's MasterName: the command SENTINEL MASTERS lists the names that a Sentinel knows"}
	faultPlaintext   = &fault{"plaintext", "connect to the server's tls-port, or set no TLSConfig. A failover client uses its TLSConfig for the Sentinels and for their master"}
	faultCertificate = &fault{"certificate", "check the client's TLSConfig: RootCAs must hold the issuer of the server's certificate, ServerName must be a name in it, and Certificates is needed if the server asks for one (tls-auth-clients)"}
	faultPassword    = &fault{"password", "set the client's Password, and its Username if it has one; if a Sentinel wants it, SentinelPassword"}
	faultLogin       = &fault{"login", "check the client's Username and Password, and that the server has that user and has enabled it; if it is a Sentinel, SentinelUsername and SentinelPassword"}
	faultProtected   = &fault{"protected", "the server accepts only local connections: give it a password, or turn its protected mode off"}
	faultPermission  = &fault{"permission", "grant the client's user the keys that begin with the limiter's prefix, and " + commands("+") + "; a Cluster's client also needs +cluster; without +eval, load the script as package lua says"}
	faultCommand     = &fault{"command", "the server, or a proxy before it, lacks a command: the limiter needs " + commands("")}
	faultScripting   = &fault{"scripting", "the server, or a proxy before it, runs no Lua scripts: the limiter needs EVALSHA and EVAL"}
	faultClosed      = &fault{"closed", "close the client after the limiter"}
)

// commands returns the names of the commands that the limiter needs, each after a
// prefix.
func commands(prefix string) string {
	names := prefix + "evalsha " + prefix + "eval"
	for command := range strings.SplitSeq(scriptCommands, ";") {
		names += " " + prefix + strings.Fields(command)[0]
	}
	return names
}

// notReady returns the error of Ready for the cause. It includes the remedy if
// the cause will not resolve itself.
func notReady(cause error) error {
	if f := troubleOf(cause).fault; f != nil {
		return &Misconfiguration{Fault: f.name, Cause: brief(cause), Advice: f.advice}
	}
	return fmt.Errorf("shared: redis: %w", cause)
}

var (
	errMaster = errors.New("the Sentinels do not know the name of the master")
	errClosed = fmt.Errorf("%w by the program; it must close it after the limiter", redis.ErrClosed)
)

// brief makes the text of an error fit for logs and for operators. It omits the
// arguments that a server repeats when it does not know a command, because they
// include keys. It says who has closed a client. Go-redis says that no sentinel can be reached even if one has
// answered; brief then gives that answer.
func brief(err error) error {
	switch text, _, cut := strings.Cut(err.Error(), ", with args beginning with"); {
	case masterUnknown(err):
		return errMaster
	case errors.Is(err, redis.ErrClosed):
		return errClosed
	case cut:
		return scriptError(text)
	}
	return err
}
