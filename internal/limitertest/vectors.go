package limitertest

import (
	"fmt"
	"testing"
)

// runVectors plays the worked examples of the specification: alone, with trials beside every Take (which change
// nothing), and with every figure probed.
func runVectors(t *testing.T, s Subject) {
	for name, traces := range map[string][]trace{
		"token-bucket":           tokenBucketTraces,
		"token-bucket-clock":     tokenBucketClockTraces,
		"token-bucket-returns":   tokenBucketReturnTraces,
		"leaky-bucket":           leakyBucketTraces,
		"sliding-window-counter": counterTraces,
		"sliding-window-log":     logTraces,
		"fixed-window":           fixedWindowTraces,
	} {
		for i, tr := range traces {
			for m, mode := range modes {
				t.Run(fmt.Sprintf("%s %d %s", name, i, m), func(t *testing.T) {
					t.Parallel()
					s.world(t, tr.rule).play(tr, mode)
				})
			}
		}
	}
}
