// Bugs that other limiters had, and that are not made here. The name of each rule says who had the bug: some in the
// version that was current when the rule was written, many of them reproduced.

package limitertest

import "testing"

func runPeers(t *testing.T, s Subject) {
	s.run(t, clockPeers)
	s.run(t, chargePeers)
	s.run(t, keyPeers)
}
