package ratelimit

import "github.com/penstock-go/penstock/algorithms"

// An Outcome is the result of a policy for a request, one word in metrics, logs and traces.
type Outcome uint8

const (
	OutcomeAllowed Outcome = iota
	OutcomeDenied
	OutcomeShadowDenied    // a shadow policy would have denied it
	OutcomeDegradedAllowed // admitted by this instance alone
	OutcomeDegradedDenied  // denied by this instance alone
	OutcomeFailedOpen      // no decision; the request passed
	OutcomeFailedClosed    // no decision; the request was refused
	OutcomeKeyError        // there is no valid key
	OutcomeUnasked         // not asked, because the limiter remembered a denial by another policy
	OutcomeCancelled       // the context ended before a decision
	OutcomeBanned          // an override or a Ban bans the key
	OutcomeBorrowed        // admitted beyond the tenant's share (Policy.ShareBy)
	OutcomeSpared          // the other policy of a pair (Policy.After) is charged, or denies
	OutcomeInvalid         // the check was invalid; the last
)

var outcomeNames = [...]string{
	"allowed", "denied", "shadow_denied", "degraded_allowed", "degraded_denied", "failed_open", "failed_closed",
	"key_error", "unasked", "cancelled", "banned", "borrowed", "spared", "invalid",
}

// String returns the word, e.g. "shadow_denied", or "unknown".
func (o Outcome) String() string {
	if int(o) >= len(outcomeNames) {
		return "unknown"
	}
	return outcomeNames[o]
}

// Result returns one word for the request, which metrics count once: "allowed"; "denied" by a limit, a ban, or a policy
// that fails closed; or "refused", e.g. for an unknown key.
func (v *Verdict) Result() string {
	if v.Allowed {
		return "allowed"
	}
	for i := range v.Policies {
		switch v.Policies[i].Outcome {
		case OutcomeDenied, OutcomeDegradedDenied, OutcomeBanned, OutcomeFailedClosed:
			return "denied"
		}
	}
	return "refused"
}

func (v *Verdict) outcome(p *PolicyVerdict, why refusal) Outcome {
	decided := p.Decision.Source != algorithms.Undecided
	switch {
	case p.spared && (v.Allowed || why.err == nil):
		return OutcomeSpared
	case why.err != nil:
		return why.outcome
	case p.Banned:
		return OutcomeBanned
	case p.Guessed && p.Decision.Allowed:
		return OutcomeKeyError
	case p.Guessed:
		return OutcomeDenied // by this instance, whether it is degraded or not
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
