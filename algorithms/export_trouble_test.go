package algorithms

import "strings"

// TroubleForTest returns what the table says of an error: its class, what it
// says to a circuit breaker, and of retry and executed those that are true.
func TroubleForTest(err error) string {
	trouble := troubleOf(err)
	words := []string{trouble.class.String(), [...]string{"success", "failure", "none"}[trouble.effect]}
	if trouble.retry {
		words = append(words, "retry")
	}
	if trouble.executed {
		words = append(words, "executed")
	}
	return strings.Join(words, " ")
}

// ProbeKeysForTest returns the keys that Ready uses, and the Cluster slot of
// each.
func ProbeKeysForTest() map[string]int {
	slots := make(map[string]int)
	for _, checks := range probes() {
		for i := range checks {
			key := string(appendStored(nil, &checks[i]))
			slots[key] = int(slotOf(hashTag(key)))
		}
	}
	return slots
}

// Rows of the table, by the place that is used for them.
var (
	ErrTimeoutForTest   = errTimeout
	ErrUnsentForTest    = errUnsent
	ErrReplyForTest     = errReply
	ErrStoredKeyForTest = errStoredKey
)
