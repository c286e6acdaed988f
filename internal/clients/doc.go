// Package clients drives clients of other projects against penstock. Its tests
// measure what npm's, Python's and Go's clients make of a denial, and compare it with
// the table of package headers; go test -update writes that table. They also make
// calls of gRPC and Connect. go.mod and package-lock.json name the versions.
//
// make test-clients runs them, outside of make check.
package clients
