// Package tests has the tests of the pipeline, which use Redis and modules of others. go mod tidy of an adopter reads the tests in
// the folders that it imports, so they do not stand beside the code.
package tests
