// Package lab holds no code. Its folders are the programs that measure and trouble penstock:
//
//	accuracy compares each algorithm with an exact log: make accuracy
//	bench    compares penstock with its peers: make bench
//	fair     runs nine modest tenants beside a greedy one: make fair
//	herd     simulates crowds of denied clients: make herd
//	migrate  has the programs of COMING_FROM.md: before, with a peer, and after
//	mutants  breaks the code that decides, and counts the changes that the tests notice: make mutants
//	outage   kills Redis under four rate limiters, and draws what clients notice: make outage
//	peers    holds limiters of other libraries to the same promises: make peers
//	servers  runs the tests that need Redis on several servers: make test-servers
//	soak     troubles Redis under load: make soak
//
// The lab is a module of its own. The product's go.mod does not name the peers, and the product's ./... leaves the lab out.
package lab
