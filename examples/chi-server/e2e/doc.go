// Package e2e tests the example server's page with a browser: Chromium, without
// a window, drives the program as it is built from this tree.
//
// Each page has a file of tests that is named after it, and begins with open.
//
// It is a module of its own, so that what drives the browser is in nobody else's
// go.mod.
package e2e
