// Package redistest starts real redis-server processes for tests and ends them with the test.
//
//	| You need                                | Use                                            |
//	|-----------------------------------------|------------------------------------------------|
//	| one empty server                        | Start                                          |
//	| a server with a setting                 | Start(t, "--maxmemory", "10mb")                |
//	| a Cluster of three masters              | StartCluster                                   |
//	| the same with a replica each            | StartClusterWithReplicas                       |
//	| a primary, a replica and sentinels      | StartSentinel                                  |
//	| a server that speaks TLS                | StartTLS                                       |
//	| a server that died                      | Server.Kill, Server.Restart                    |
//	| a server that hangs                     | Server.Stop, Server.Continue                   |
//	| a server that answers LOADING           | Server.RestartLoading, Server.FinishLoading    |
//	| a server that answers BUSY              | Server.StartScript, Server.KillScript          |
//	| a server that answers MISCONF           | Server.BreakSaves                              |
//	| a network that delays, loses or refuses | StartProxy, Proxy.Set                          |
//	| a client that delays, fails or answers  | Script, Client.Set; see Step                   |
//	| the number and texts of commands        | Script, Client.Count, Client.Trips             |
//	| this test binary in another process     | Rerun in the test, RunJob in the process       |
//	| to wait for a condition                 | Until, UntilEmpty                              |
//	| another version or a fork               | the variable REDIS_SERVER in the environment   |
//	| a test that such a fork cannot run      | SkipOn, which names it in SERVERS.md           |
//
// Arguments of redis-server make it refuse commands in other ways:
//
//	| Answer to a script that writes | Arguments                                                          |
//	|--------------------------------|--------------------------------------------------------------------|
//	| NOAUTH, WRONGPASS              | "--requirepass", "secret"                                          |
//	| NOPERM                         | "--user", "alice", "on", ">secret", "~rl:*", "+eval", "+set"       |
//	| OOM                            | "--maxmemory", "1"                                                 |
//	| ERR max number of clients      | "--maxclients", "2"                                                |
//	| NOREPLICAS                     | "--min-replicas-to-write", "1"                                     |
//	| READONLY                       | "--replicaof", "127.0.0.1", port                                   |
//	| MASTERDOWN                     | the same for a dead server, "--replica-serve-stale-data", "no"     |
//	| CLUSTERDOWN                    | "--cluster-enabled", "yes"                                         |
//
// Script makes a Client that stands between a limiter and Redis, or replaces Redis. It takes each command through Steps.
//
// A missing redis-server fails the test, because a green run without Redis proves nothing. With -short it skips the test,
// and make test-short prints how many tests were left out.
//
// Every server listens on a free port of 127.0.0.1, and keeps its files in a directory of the test. It persists data
// only if an argument or the command SAVE makes it. The end of the test kills the server, even a frozen one. On Linux
// the kernel also kills it when the test binary dies.
package redistest
