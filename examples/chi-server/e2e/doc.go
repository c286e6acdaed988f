// Package e2e tests the pages of the example server in a headless Chromium. It
// builds the program from this tree.
//
// It is a module of its own, so that penstock's go.mod lists no module that drives
// a browser.
package e2e
