// Bugs of other limiters that these limiters do not have. The name of each rule names the limiter: some in the version
// that was current when the rule was written, many of them reproduced.

package limitertest

import "testing"

func runPeers(t *testing.T, s Subject) {
	s.run(t, clockPeers)
	s.run(t, chargePeers)
	s.run(t, keyPeers)
}
