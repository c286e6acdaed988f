package ratelimit

// An Outcome is the result of one policy for one request. Its String is the word
// that metrics, logs and traces use:
//
//	allowed           the policy admitted the request
//	denied            the policy denied it
//	shadow_denied     a shadow policy would have denied it
//	degraded_allowed  this instance admitted it alone, because the shared limiter is in trouble
//	degraded_denied   this instance denied it alone
//	failed_open       the limiter could not decide, and the request passed
//	failed_closed     the limiter could not decide, and the request was refused
//	key_error         the policy's key is missing, malformed or unknown, or its function failed
//	unasked           another policy was known to deny, and the limiter did not ask this one
//	cancelled         the request's context ended before a decision
//	banned            the key is banned, and the limiter was not asked
//	invalid           the limiter refused an invalid check, e.g. a negative cost
//
// The zero Outcome is "allowed".
type Outcome uint8

const (
	outcomeAllowed Outcome = iota
	outcomeDenied
	outcomeShadowDenied
	outcomeDegradedAllowed
	outcomeDegradedDenied
	outcomeFailedOpen
	outcomeFailedClosed
	outcomeKeyError
	outcomeUnasked
	outcomeCancelled
	outcomeBanned
	outcomeInvalid

	// Outcomes is the number of outcomes: an array of counters has a place for
	// each.
	Outcomes int = iota
)

var outcomeNames = [Outcomes]string{
	"allowed", "denied", "shadow_denied", "degraded_allowed", "degraded_denied", "failed_open", "failed_closed",
	"key_error", "unasked", "cancelled", "banned", "invalid",
}

// String returns the word, e.g. "shadow_denied", and "unknown" for a value that is
// no outcome.
func (o Outcome) String() string {
	if int(o) >= Outcomes {
		return "unknown"
	}
	return outcomeNames[o]
}
