// The worked examples of each algorithm, which are in its file: alone, with trials beside every Take (which must
// change nothing), and with every figure probed.

package limitertest

import (
	"fmt"
	"testing"
)

func runVectors(t *testing.T, s Subject) {
	for _, a := range every() {
		for i, tr := range a.vectors {
			for m, mode := range modes {
				t.Run(fmt.Sprintf("%s %d %s", a.name(), i, m), func(t *testing.T) {
					t.Parallel()
					s.world(t, tr.rule).play(tr, mode)
				})
			}
		}
	}
}
