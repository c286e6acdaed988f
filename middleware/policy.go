package ratelimit

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
)

// A Policy says who may do how much. It is data: [New] validates it, and reports
// every misconfiguration. A first policy needs a Name and a Limit.
//
// The middleware calls a policy's functions once per request before the handler,
// and ChargeIf after it. Package keyfunc has their rules, in "Your functions".
type Policy struct {
	// Name is part of stored keys, headers and metrics: a letter, then up to 63
	// letters, digits, '.', '_' or '-'. Two policies of one name and algorithm
	// count together if their limiter is the same.
	Name string

	// Key says who is counted. The zero Key is the client's address, as
	// Options.ClientIP finds it.
	Key keyfunc.Key

	// Limit says how much. It holds for requests without a tier, and for those
	// whose tier Tiers lacks.
	//
	// A Concurrent limit is held until the handler returns, even after a hijack, so
	// it works with Handler only. If tiers or overrides replace it, give them the
	// same hold time.
	Limit algorithms.Limit

	// Tiers are the limits of the tiers that the Key's identities have. They need
	// a Key with an identity: keyfunc.APIKey or keyfunc.User. The tier of an
	// identity that Tiers lacks is a finding.
	Tiers map[string]algorithms.Limit

	// LimitOf returns the limit of a request, e.g. from a customer's row or from a
	// claim, and false where the tier's limit or Limit holds. nil means that it
	// never holds. LimitOf comes before tiers, and after overrides. The middleware
	// logs and ignores a limit that New would refuse, such as one of 0 requests:
	// return algorithms.Nobody() for a customer who may do nothing. LimitOf does not
	// receive the Key's identity: authenticate first, and use keyfunc.User.
	LimitOf func(*http.Request) (algorithms.Limit, bool)

	// Cost returns the cost of a request, in units of the limit; nil means 1. A
	// cost of 0 is admitted unless the key is in debt. The answer to a negative
	// cost is 500. A cost above the burst is denied for ever, so clamp numbers
	// that clients send.
	//
	// If the cost is known only while the request is served, return what most
	// requests need, at least 1, and correct it with [Settle].
	Cost func(*http.Request) int64

	// ChargeIf, if not nil, decides by the status of the response whether a request
	// counts, e.g. failed logins only. The request's cost is reserved meanwhile, so
	// that no more requests than the limit allows can count, however many are in
	// flight. Therefore the RetryAfter of a denied client may be too long. It works
	// with Handler only.
	//
	// A request that counts and took longer than a thousandth of the window counts
	// from its end. A request that takes longer than the window loses its
	// reservation, so set the server's ReadTimeout: otherwise the requests of
	// several windows could end at one instant, and at most one burst of debt is
	// charged for them.
	//
	// The package documentation has a table of the statuses that ChargeIf sees, and
	// the lines that gin and echo need.
	ChargeIf func(status int) bool

	// Ban locks out repeat offenders; nil means that the policy bans no key.
	Ban *Ban

	// Skip returns whether the policy does not apply to a request; nil means that
	// it always applies.
	Skip func(*http.Request) bool

	// Fail says what happens to requests that the shared limiter does not decide.
	Fail algorithms.FailureMode

	// Hidden keeps the policy out of headers. Hide policies whose key is another
	// person's identifier, such as a user name.
	Hidden bool

	// Capacity is for capacity that all clients share. It implies Hidden, because
	// its figures would reveal the load of others. If only Capacity policies deny,
	// the status is 503 instead of 429.
	//
	// Do not use it for a client's own limit: a 503 says that the service is at
	// fault, and proxies and clients try again elsewhere.
	Capacity bool

	// Spread says whether each denied client gets a Retry-After of its own, its slot,
	// instead of the instant at which all clients would return. nil means that it does
	// where many clients share the limit: in a policy that is Hidden or of Capacity,
	// and where the Key has only a keyfunc.Const or a route. See "Retry-After" in the
	// package documentation.
	//
	// Set it for a key that many clients use, such as the API key of a fleet.
	// Concurrent limits have no rate, and so no slots.
	Spread *bool

	// Shadow policies count and report, and deny no request. They are charged for
	// requests that every other policy admits. A request whose shadow key is an
	// error is not counted. A shadow policy costs the store as much as a live one.
	Shadow bool

	// Candidate is a limit to try beside Limit, on the same requests, in a count
	// of its own; nil means none. Only Limit decides. The middleware tries the
	// candidate where Limit itself holds. The event Diverged reports requests that
	// the candidate would have decided otherwise. A candidate costs the store as
	// much as a live limit.
	Candidate *algorithms.Limit

	// PlainKeys shows operators the policy's keys as they are. Otherwise they see
	// the kind of each part and a part of its hash, e.g. ip=#7a3c5e0d9b1f2a48.
	PlainKeys bool
}

// hidden reports whether headers keep silent about the policy.
func (p *Policy) hidden() bool { return p.Hidden || p.Capacity }

// sharing reports whether denied clients get slots, and whether the policy's key,
// of these kinds, is one client's own.
func (p *Policy) sharing(kinds []string) (spreads, countsClient bool) {
	shared := p.hidden() || !slices.ContainsFunc(kinds, func(kind string) bool { return kind != "const" && kind != "rt" })
	if p.Spread == nil {
		return shared, !shared
	}
	return *p.Spread, !shared && !*p.Spread
}

// settles reports whether units may be returned or forced after the decision.
func (p *Policy) settles() bool { return p.Cost != nil || p.ChargeIf != nil }

// limits returns all limits of the policy's configuration.
func (p *Policy) limits() []algorithms.Limit {
	limits := append(slices.Collect(maps.Values(p.Tiers)), p.Limit)
	if p.Candidate != nil {
		limits = append(limits, *p.Candidate)
	}
	return limits
}

// validate reports every misconfiguration of the policy.
func (p *Policy) validate() error {
	prefix := fmt.Sprintf("ratelimit: policy %q", p.Name)
	var errs []error
	refuse := func(err error) { errs = append(errs, lines(prefix, err)...) }

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
	refuse(p.Limit.Validate())
	if p.Candidate != nil {
		errs = append(errs, lines(prefix+": candidate", p.Candidate.Validate())...)
	}
	for _, tier := range slices.Sorted(maps.Keys(p.Tiers)) {
		errs = append(errs, lines(fmt.Sprintf("%s: tier %q", prefix, tier), p.Tiers[tier].Validate())...)
		if tier == "" {
			refuse(errors.New(`the field Tiers has "", which is the tier of requests without one: put its limit into Limit`))
		}
	}
	refuse(p.validateSettling())
	return errors.Join(errs...)
}

// validateKey reports the misconfigurations of the key.
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

// validateSettling reports the limits that the policy's ChargeIf does not go
// together with, each reason once.
func (p *Policy) validateSettling() error {
	var errs []error
	said := make(map[string]bool)
	for _, l := range p.limits() {
		if err := p.validateLimit(l); err != nil && !said[err.Error()] {
			said[err.Error()] = true
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// validateLimit reports why a valid limit does not go together with the policy.
func (p *Policy) validateLimit(l algorithms.Limit) error {
	switch {
	case l.Validate() != nil:
		return nil // reported by validate
	case l.Algorithm().Concurrent():
		return p.validateConcurrent(l)
	case l.Algorithm() == leakyBucket && p.ChargeIf != nil:
		return errors.New("a leaky-bucket limit and ChargeIf cannot be combined: the requests behind one have been promised their turns")
	default:
		return nil
	}
}

// replaceable reports why New would refuse a limit in place of the policy's.
func (p *Policy) replaceable(l algorithms.Limit) error {
	return errors.Join(l.Validate(), p.validateLimit(l))
}
