package headers

import "time"

// A Response has the contents for [Dialect.Write]. The zero value adds no
// field.
type Response struct {
	// Quotas are the quotas of all advertised policies.
	Quotas []*Quota

	// States are the decisions of the advertised policies.
	States []State

	// Denied is true if any policy denied the request, advertised or not, or the service refuses it with a wait.
	Denied bool

	// RetryAfter is the wait until every policy admits the request; [Never] if none helps. A longer one of a denied State
	// takes precedence.
	RetryAfter time.Duration

	// Now is the time of the decision; zero omits X-RateLimit-Reset.
	Now time.Time
}

// wait returns the longest wait of a denied response.
func (resp *Response) wait() time.Duration {
	longest := resp.RetryAfter
	for i := range resp.States {
		if s := &resp.States[i]; s.listed(true) {
			longest = max(longest, s.RetryAfter)
		}
	}
	return longest
}
