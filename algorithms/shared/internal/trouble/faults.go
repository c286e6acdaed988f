// Misconfigurations between the client and the server, and their remedies.

package trouble

import "strings"

// A Fault is a kind of misconfiguration, and what to do about it.
type Fault struct{ Name, Advice string }

var (
	FaultCluster     = &Fault{"cluster", "the server is a node of a Redis Cluster: use redis.NewClusterClient"}
	FaultStandalone  = &Fault{"standalone", "the server is not in a Redis Cluster: use redis.NewClient, or redis.NewFailoverClient for Sentinel"}
	FaultSentinel    = &Fault{"sentinel", "use redis.NewFailoverClient with its address in SentinelAddrs, and the MasterName"}
	FaultNoSentinel  = &Fault{"nosentinel", "put the addresses of Sentinels, often with port 26379, into the client's SentinelAddrs, or use redis.NewClient"}
	FaultMaster      = &Fault{"master", "check the client's MasterName: the command SENTINEL MASTERS lists the names that a Sentinel knows"}
	FaultPlaintext   = &Fault{"plaintext", "connect to the server's tls-port, or set no TLSConfig. A failover client uses its TLSConfig for the Sentinels and for their master"}
	FaultCertificate = &Fault{"certificate", "check the client's TLSConfig: RootCAs must hold the issuer of the server's certificate, ServerName must be a name in it, and Certificates is needed if the server asks for one (tls-auth-clients)"}
	FaultPassword    = &Fault{"password", "set the client's Password, and its Username if it has one; if a Sentinel wants it, SentinelPassword"}
	FaultLogin       = &Fault{"login", "check the client's Username and Password, and that the server has that user and has enabled it; if it is a Sentinel, SentinelUsername and SentinelPassword"}
	FaultProtected   = &Fault{"protected", "the server accepts only local connections: give it a password, or turn its protected mode off"}
	FaultPermission  = &Fault{"permission", "grant the client's user the keys that begin with the limiter's prefix, and " + Commands("+") + "; a Cluster's client also needs +cluster; without +eval, load the script as package lua says"}
	FaultCommand     = &Fault{"command", "the server, or a proxy before it, lacks a command: the limiter needs " + Commands("")}
	FaultScripting   = &Fault{"scripting", "the server, or a proxy before it, runs no Lua scripts: the limiter needs EVALSHA and EVAL"}
	FaultClosed      = &Fault{"closed", "close the client after the limiter"}
)

// Commands returns the names of the commands that the limiter needs, each after a
// prefix.
func Commands(prefix string) string {
	names := prefix + "evalsha " + prefix + "eval"
	for command := range strings.SplitSeq(ScriptCommands, ";") {
		names += " " + prefix + strings.Fields(command)[0]
	}
	return names
}

// ScriptCommands are the commands of the script, which package lua lists. With
// these arguments they store nothing: most of them fail, because KEY holds a
// string.
const ScriptCommands = `time; set KEY 0 px 1000; psetex KEY 1000 0; get KEY; mget KEY; incrby KEY 0; pexpire KEY 1000;
	lindex KEY 0; llen KEY; lrange KEY 0 0; lrem KEY 0 0; lset KEY 0 0; ltrim KEY 0 0; rpush KEY 0;
	zadd KEY 0 0; zcard KEY; zrange KEY 0 0; zrangebyscore KEY 0 0; zrem KEY 0;
	zremrangebyrank KEY 0 0; zremrangebyscore KEY 0 0; zscore KEY 0; del KEY`
