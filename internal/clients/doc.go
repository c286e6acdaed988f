// Package clients drives clients of other projects against penstock. Its tests
// measure how clients from npm, Python and Go understand a denial, and compare the
// results with the table of package headers; go test -update writes that table. The
// tests also make calls with gRPC, Connect and MCP. go.mod and package-lock.json name
// the versions.
//
// make test-clients runs the tests.
package clients
