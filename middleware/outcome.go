package middleware

import "github.com/penstock-go/penstock/algorithms"

// An Outcome is what became of one policy's part in a verdict: the word that
// metrics, logs and traces use for it.
type Outcome uint8

const (
	// OutcomeAllowed: the policy admitted the request.
	OutcomeAllowed Outcome = iota
	// OutcomeDenied: the policy denied it.
	OutcomeDenied
	// OutcomeShadowDenied: a shadow policy would have denied it.
	OutcomeShadowDenied
	// OutcomeDegradedAllowed: this process admitted it alone, because the
	// limiter that all instances share is in trouble.
	OutcomeDegradedAllowed
	// OutcomeDegradedDenied: this process denied it alone.
	OutcomeDegradedDenied
	// OutcomeFailedOpen: nobody decided, and it may pass.
	OutcomeFailedOpen
	// OutcomeFailedClosed: nobody decided, and it was refused.
	OutcomeFailedClosed
	// OutcomeKeyError: the policy's key is missing, malformed or unknown, or
	// its function failed.
	OutcomeKeyError
	// OutcomeUnasked: another policy was known to deny, and so this one was
	// not asked.
	OutcomeUnasked
	// OutcomeCancelled: the request's context ended before a decision.
	OutcomeCancelled
	// OutcomeBanned: the key is banned, and nobody was asked.
	OutcomeBanned
	// OutcomeInvalid: a mistake of the program, such as a negative cost.
	OutcomeInvalid

	// Outcomes is how many there are.
	Outcomes int = iota
)

var outcomeNames = [Outcomes]string{
	"allowed", "denied", "shadow_denied", "degraded_allowed", "degraded_denied", "failed_open", "failed_closed",
	"key_error", "unasked", "cancelled", "banned", "invalid",
}

// String returns the outcome as a metric's label has it, e.g. "shadow_denied".
func (o Outcome) String() string {
	if int(o) >= Outcomes {
		return "unknown"
	}
	return outcomeNames[o]
}

// Outcome returns what became of v.Policies[i].
func (v *Verdict) Outcome(i int) Outcome {
	p := &v.Policies[i]
	decided := p.Decision.Source != algorithms.Undecided
	switch {
	case v.failure != OutcomeAllowed:
		return v.failure
	case p.Banned:
		return OutcomeBanned
	case p.Shadow && decided && !p.Decision.Allowed:
		return OutcomeShadowDenied
	case !decided && p.Decision.Allowed && v.Degraded:
		return OutcomeFailedOpen
	case !decided && p.Decision.Allowed:
		return OutcomeUnasked
	case v.Degraded && p.Decision.Allowed:
		return OutcomeDegradedAllowed
	case v.Degraded:
		return OutcomeDegradedDenied
	case p.Decision.Allowed:
		return OutcomeAllowed
	default:
		return OutcomeDenied // also by a Memory that is full
	}
}

// Source returns who decided: Shared or Local if any policy has that, since
// one call asks one of them; else Undecided.
func (v *Verdict) Source() algorithms.Source {
	source := algorithms.Undecided
	for i := range v.Policies {
		if s := v.Policies[i].Decision.Source; s == algorithms.Shared {
			return s
		} else if s != algorithms.Undecided {
			source = s
		}
	}
	return source
}
