package ratelimit

// An Outcome is the result of a policy for a request, one word in metrics, logs and traces:
//
//	allowed           the policy admitted the request
//	denied            the policy denied it
//	shadow_denied     a shadow policy would have denied it
//	degraded_allowed  this instance alone admitted it
//	degraded_denied   this instance alone denied it
//	failed_open       no decision; the request passed
//	failed_closed     no decision; the request was refused
//	key_error         there is no valid key
//	unasked           another policy was known to deny
//	cancelled         the context ended before a decision
//	banned            an override or a Ban bans the key
//	invalid           the check was invalid
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

	// Outcomes is the number of outcomes.
	Outcomes int = iota
)

var outcomeNames = [Outcomes]string{
	"allowed", "denied", "shadow_denied", "degraded_allowed", "degraded_denied", "failed_open", "failed_closed",
	"key_error", "unasked", "cancelled", "banned", "invalid",
}

// String returns the word, e.g. "shadow_denied", or "unknown".
func (o Outcome) String() string {
	if int(o) >= Outcomes {
		return "unknown"
	}
	return outcomeNames[o]
}
