// Peers holds rate limiters for Go to the same promises, and writes RESULTS.md: one line per limiter, one column per
// promise.
//
//	go -C internal/lab run ./peers -o peers
//	go -C internal/lab run ./peers -repro httprate-keys
//
// # Reading order
//
//	library.go      a library as the promises see it: requests, answers, quotes of its documentation
//	promise.go      the promises; promise_*.go and clock.go have a function for each
//	trial.go        one library and one promise: clients, instances, a redis-server of its own
//	judge.go        all trials; package repro confirms the red cells
//	page.go         RESULTS.md
//	scripts.go      scripts as articles print them; package scripts has their text
//	the others      one file per library
//
// # Correcting a cell
//
// A cell is green or red because its promise's function says so, and grey because the library's file quotes
// documentation that does not promise it. A test looks for each quote in the library's source. Correct the adapter or the
// quote, and run make peers.
package main
