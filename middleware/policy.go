package ratelimit

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware/internal/joined"
	"github.com/penstock-go/penstock/middleware/internal/limits"
)

// A Policy says who may do how much. It needs a Name and a Limit. Its functions run once per request before the
// handler, and ChargeIf after it; "Your functions" in package keyfunc has their rules.
type Policy struct {
	// Name is part of stored keys, headers and metrics; see algorithms.ValidatePolicy. Policies with the same name,
	// algorithm and limiter count together.
	Name string

	// Key says who is counted. The zero Key is the address of Options.ClientIP.
	Key keyfunc.Key

	// Limit says how much, unless an override, LimitOf or Tiers does; the first of these counts.
	//
	// A Concurrent limit is held, and renewed, until the handler returns, even after a hijack. Put
	// http.TimeoutHandler outside of the Middleware (PS116 in RUNBOOK.md). A hold time (maxHold) of 10 to 30 s suits
	// longer requests, too: it is how long the units of a killed instance are missing. A new limit must have the same
	// hold time.
	Limit algorithms.Limit

	// Tiers are the limits of the tiers of the Key's identities, a keyfunc.APIKey or keyfunc.User. Another tier has
	// Limit, and is a finding.
	Tiers map[string]algorithms.Limit

	// ShareBy, if not the zero Key, says who shares the Limit of a Key that many have, such as a keyfunc.Const. When
	// the limit is full, each tenant still has its share: Limit × weight / sum of the weights of the tenants that are
	// present. A tenant stays present as long as the burst takes to refill, from 5 s to a minute.
	// [algorithms.TakeReserved] says which limits can be shared, and the most that they admit. A Shadow counts
	// nothing beyond the burst, so it reports too few denials.
	//
	// It must be a verified identity, a keyfunc.APIKey or keyfunc.User, perhaps with constants and routes. "Fair
	// shares" in RECIPES.md has more.
	ShareBy keyfunc.Key

	// Weights are the weights of the tiers of ShareBy's identities, from 1 to 1 000. Other tiers have 1.
	Weights map[string]int64

	// After, if not empty, names another policy, behind which this one stands, such as credits behind the quota of a
	// plan. A request is charged to this policy only if the other does not fit. One with [OutcomeSpared] has no
	// headers. "A soft limit" in RECIPES.md says what holds where one of the two does not apply.
	After string

	// LimitOf, if not nil, returns the limit of a request, e.g. from a customer's row; the zero Limit means none. After
	// an error or an invalid limit, which the middleware logs, Tiers or Limit holds. Authenticate first, and use
	// [keyfunc.User].
	LimitOf func(*http.Request) (algorithms.Limit, error)

	// Cost returns the cost of a request in units of the limit; nil means 1. A cost above the burst is denied for
	// ever, so clamp numbers that clients send. If the cost is known only later, return an estimate of at least 1,
	// and correct it with [Settle].
	Cost func(*http.Request) int64

	// ChargeIf, if not nil, decides by the status of the response whether a request counts, e.g. failed logins only.
	// It works with Handler only. The cost is charged when the request begins, and given back soon after its end if
	// the request does not count. Meanwhile other requests may be denied, and their RetryAfter may be too long; for
	// windows see [Settle]. If ChargeIf panics, the request counts. Requests that this Middleware refuses do not.
	//
	// The status is the handler's: 200 if it wrote nothing, 500 after a panic, 499 if the client hung up, 504 after a
	// timeout, 101 after a hijack. A code of gRPC, gRPC-Web and Connect becomes the status of google.rpc.Code, e.g.
	// 401 for UNAUTHENTICATED, and a missing one 500. gin and echo need a line more; see "Stacks" in RECIPES.md.
	ChargeIf func(status int) bool

	// Exact lets the store decide each request: no remembered answer denies it, and none is admitted ahead. A policy with
	// ChargeIf or a Candidate always asks.
	Exact bool

	// Ban locks out repeat offenders; nil means no bans.
	Ban *Ban

	// Skip, if not nil, reports whether this policy neither counts nor denies a request.
	Skip func(*http.Request) bool

	// Fail says what happens while Redis is down: FailLocal (the default), FailOpen where the limit does not matter for
	// an hour, or FailClosed for passwords, money and one-time codes.
	Fail algorithms.FailureMode

	// Hidden keeps the policy out of headers. Hide policies whose key is another person's identifier, such as a user
	// name, and Concurrent limits beside a quota that clients should see. The body still names a Concurrent limit that
	// denies.
	Hidden bool

	// Capacity is for capacity that all clients share. It implies Hidden, and a 503 if no other policy denies. Do not
	// use it for a client's own limit: proxies send a 503 elsewhere.
	Capacity bool

	// Shadow counts and reports requests that every other policy admits, and denies none.
	Shadow bool

	// Candidate is a limit to try beside Limit, in a count of its own; nil means none. See [Diverged].
	Candidate *algorithms.Limit
}

// hidden reports whether headers keep silent about the policy.
func (p *Policy) hidden() bool { return p.Hidden || p.Capacity }

// advertised reports whether headers describe the policy.
func (p *Policy) advertised() bool { return !p.hidden() && !p.Shadow }

func (p *Policy) limits() []algorithms.Limit {
	limits := append(slices.Collect(maps.Values(p.Tiers)), p.Limit)
	if p.Candidate != nil {
		limits = append(limits, *p.Candidate)
	}
	return limits
}

func (p *Policy) validate() error {
	prefix := fmt.Sprintf("ratelimit: policy %q", p.Name)
	var errs []error
	refuse := func(err error) { errs = append(errs, joined.Prefix(prefix, err)...) }

	refuse(algorithms.ValidatePolicy(p.Name))
	if p.Fail > algorithms.FailClosed {
		refuse(fmt.Errorf("%d is not a failure mode", p.Fail))
	}
	if p.Shadow && p.Fail == algorithms.FailClosed {
		refuse(errors.New("the fields Shadow and FailClosed cannot be combined: a shadow policy denies nothing"))
	}
	if p.Shadow && p.Candidate != nil {
		refuse(errors.New("the fields Shadow and Candidate cannot be combined"))
	}
	if p.Ban != nil {
		refuse(p.Ban.validate(p))
	}
	refuse(p.validateKey())
	refuse(p.validateShares())
	refuse(p.Limit.Validate())
	if p.Candidate != nil {
		errs = append(errs, joined.Prefix(prefix+": candidate", p.Candidate.Validate())...)
	}
	for _, tier := range slices.Sorted(maps.Keys(p.Tiers)) {
		errs = append(errs, joined.Prefix(fmt.Sprintf("%s: tier %q", prefix, tier), p.Tiers[tier].Validate())...)
		if tier == "" {
			refuse(errors.New(`the field Tiers has "", which is the tier of requests without one: put its limit into Limit`))
		}
	}
	refuse(limits.Validate(p.ChargeIf != nil, p.limits()...))
	return errors.Join(errs...)
}

func (p *Policy) validateKey() error {
	if p.Key == (keyfunc.Key{}) {
		if len(p.Tiers) > 0 {
			return errTiersWithoutIdentity
		}
		return nil
	}
	info, err := p.Key.Inspect()
	if err == nil && len(p.Tiers) > 0 && !info.Identity {
		err = errTiersWithoutIdentity
	}
	return err
}

var errTiersWithoutIdentity = errors.New("the field Tiers needs a Key with an identity: keyfunc.APIKey or keyfunc.User")
