// Package migrate has the programs of COMING_FROM.md: before, with another library, and after, with penstock. Its tests
// send the same requests to both, and compare every status, field and body.
package migrate
