//go:build !race

// Whether the race detector is on: it slows everything down.

package batch

const raceEnabled = false
