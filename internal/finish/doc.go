// Package finish compares client.Transport with other Go clients that retry or limit themselves, against servers of others
// and imitations of well-known services. make test-finish runs it, and writes RESULTS.md.
package finish
