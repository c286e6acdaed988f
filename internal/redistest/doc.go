// Package redistest starts real redis-server processes for tests and ends them with the test.
//
//	| You need                     | Use                                  |
//	|------------------------------|--------------------------------------|
//	| one empty server             | Start                                |
//	| a server with a setting      | Start(t, "--maxmemory", "10mb")      |
//	| a Cluster of three masters   | StartCluster                         |
//	| a server that died           | Server.Kill, Server.Restart          |
//	| a server that hangs          | Server.Stop, Server.Continue         |
//	| another version or a fork    | the variable REDIS_SERVER in the environment |
//
// A missing redis-server fails the test. Nothing is skipped, because a green run without Redis proves nothing.
//
// Every server listens on a free port of 127.0.0.1, keeps its files in a directory of the test, persists no data,
// and is killed when the test ends. On Linux the kernel also kills it when the test binary dies.
package redistest
