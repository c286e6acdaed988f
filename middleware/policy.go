package middleware

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
)

// A Policy says who may do how much. It is data: [New] validates it, and reports
// every mistake at once.
//
// Functions are called once per request, from many goroutines, before the
// handler; they must not read the body.
type Policy struct {
	// Name is part of the stored keys, of headers and of metrics: a letter,
	// then up to 63 letters, digits, '.', '_' or '-'. Two policies of one name
	// and algorithm in the same store count together.
	Name string

	// Key says who is counted.
	Key keyfunc.Key

	// Limit says how much, for requests of no tier and of an unknown one. What
	// is taken of an algorithms.Concurrent limit is held until the handler
	// returns, also one that has hijacked its connection, and so is for Handler
	// only; limits that a key may change between should have one maxHold.
	Limit algorithms.Limit

	// Tier returns the tier of a request, "" for none; nil means none ever.
	// It must come from what has been verified: who may choose their tier
	// choose their limit. A tier that Tiers does not have is observed as
	// UnknownTier.
	Tier func(*http.Request) string

	// Tiers are the limits of tiers.
	Tiers map[string]algorithms.Limit

	// Cost returns what a request costs, in units of the limit; nil means 1.
	// 0 is free, unless the key is in debt. A negative cost is answered 500,
	// a cost above the burst is denied for ever: clamp what clients send.
	Cost func(*http.Request) int64

	// Late policies learn the cost of a request while it is served: Cost, which
	// they need, returns what to reserve, at least 1, and [Settle] tells the
	// total. A request that settles less gets the rest back when its handler
	// returns; one that settles more puts its key into debt, of one burst at
	// the most. Reserve what most requests need: too little lets many in at
	// once, too much denies what would fit.
	//
	// Not for costs that are known before (use Cost), and only behind Handler.
	Late bool

	// ChargeIf, if not nil, returns whether a request counts, by the status of
	// its response: only failed logins, or only what succeeded. It is reserved
	// until then, so that no more than the limit can count however many are in
	// flight; the wait that a denied client is told may thus be too long. A
	// request that counts, counts from its end if it took longer than a
	// thousandth of the window. Requests that take longer than the window lose
	// their reservations, so set ReadTimeout: several windows' requests could end
	// at one instant, and only up to one burst of debt is charged for them. The
	// handler's ResponseWriter flushes, is hijacked and pushes as it would
	// without; what else a writer can do is found by http.ResponseController. The
	// status is 101 for a hijacked connection, 500 for a handler that panicked
	// before it had written one, 499 for one that wrote none to a client that
	// hung up, and else what was written, whether or not it arrived.
	//
	// Not for what costs the same whatever comes of it, and only behind Handler.
	ChargeIf func(status int) bool

	// Ban locks out who is denied again and again; nil means nobody.
	Ban *Ban

	// Skip returns whether the policy does not apply to a request; nil means
	// that it always does.
	Skip func(*http.Request) bool

	// Fail says what a decision without the shared limiter is worth.
	Fail algorithms.FailureMode

	// Private policies are of capacity that clients share. Responses do not
	// advertise them, since their figures would tell of other clients' load.
	Private bool

	// Capacity policies deny for want of capacity rather than for what the
	// client did: if only such ones deny, the answer is 503 instead of 429.
	//
	// Not for limits of a client's own: 503 says that the service is at fault,
	// and proxies and clients try again elsewhere.
	Capacity bool

	// Shadow policies decide, count and report, and change nothing: they never
	// deny, and no header speaks of them. They are charged what every live
	// policy admits. A request whose shadow key cannot be found is not counted.
	//
	// Not for limits that nobody looks at, since it costs the store what a live
	// policy does, and not beside a policy that it may replace: that is what
	// Candidate is for.
	Shadow bool

	// Candidate is a limit to try beside Limit, on the same requests of no
	// tier, in a count of its own; nil means none. Only Limit decides. Where
	// the two disagree is observed as Diverged. It is charged what it and every
	// other live policy admit, so that it counts as it would if it were Limit.
	//
	// Not for a change that is certain: put it into Limit, and what was used
	// counts on. And not for longer than it is looked at: it costs what a live
	// limit does.
	Candidate *algorithms.Limit

	// ShowKeys says how much of its keys those see who operate the service.
	// The zero value, ShowHashed, tells them apart.
	ShowKeys KeyDisplay
}

// policy is a Policy, ready for requests.
type policy struct {
	Policy
	base      *grade
	tiers     map[string]*grade
	candidate *grade  // nil if there is none
	trial     string  // the candidate's name
	banner    *banner // nil if nobody is banned
	denied    *denials
	symptoms  *symptoms

	overridden [64]atomic.Pointer[grade] // limits of overrides, each at one place
}

// A grade is a limit of a policy, and what responses say of it.
type grade struct {
	tier  string
	limit algorithms.Limit
	quota *headers.Quota // nil if responses do not advertise it
}

func newPolicy(p Policy) (*policy, error) {
	prefix := fmt.Sprintf("middleware: policy %q", p.Name)
	var errs []error
	mistake := func(err error) { errs = append(errs, lines(prefix, err)...) }

	mistake(algorithms.ValidatePolicy(p.Name))
	mistake(p.Key.Validate())
	if p.Fail > algorithms.FailClosed {
		mistake(fmt.Errorf("there is no failure mode %d", p.Fail))
	}
	if p.ShowKeys >= keyDisplays {
		mistake(fmt.Errorf("there is no key display %d", p.ShowKeys))
	}
	if p.Shadow && p.Fail == algorithms.FailClosed {
		mistake(errors.New("a shadow policy denies nothing, and so cannot fail closed"))
	}
	if p.Shadow && p.Candidate != nil {
		mistake(errors.New("a shadow policy has no candidate: it is one"))
	}
	mistake(validateSettling(p))
	if p.Ban != nil {
		mistake(p.Ban.validate(p))
	}
	if p.Candidate != nil {
		errs = append(errs, lines(prefix+": candidate", p.Candidate.Validate())...)
	}
	if (p.Tier == nil) != (len(p.Tiers) == 0) {
		mistake(errors.New("a Tier function and Tiers need each other"))
	}
	mistake(p.Limit.Validate())
	for _, tier := range slices.Sorted(maps.Keys(p.Tiers)) {
		errs = append(errs, lines(fmt.Sprintf("%s: tier %q", prefix, tier), p.Tiers[tier].Validate())...)
		if tier == "" {
			mistake(errors.New(`the tier "" is that of requests without one, whose limit is Limit`))
		}
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	return compile(p)
}

// compile makes a policy of what is valid.
func compile(p Policy) (*policy, error) {
	p.Tiers = maps.Clone(p.Tiers) // what the caller does to them is nothing to us
	if p.Candidate != nil {
		candidate := *p.Candidate
		p.Candidate = &candidate
	}
	base, err := newGrade(p, "", p.Limit)
	compiled := &policy{Policy: p, base: base, tiers: make(map[string]*grade, len(p.Tiers)), denied: new(denials), symptoms: new(symptoms)}
	for tier, limit := range p.Tiers {
		g, gradeErr := newGrade(p, tier, limit)
		err = errors.Join(err, gradeErr)
		compiled.tiers[tier] = g
	}
	if p.Ban != nil {
		compiled.banner = newBanner(p)
	}
	if p.Candidate != nil {
		compiled.candidate = &grade{limit: *p.Candidate}
		compiled.trial = p.Name + "~candidate"
	}
	return compiled, err
}

func newGrade(p Policy, tier string, l algorithms.Limit) (*grade, error) {
	g := &grade{tier: tier, limit: l}
	if p.Private || p.Shadow {
		return g, nil
	}
	var err error
	g.quota, err = headers.NewQuota(quotaConfig(p.Name, l))
	return g, err
}

// rank orders policies: shadows after all others, and private ones after public
// ones.
func (p *policy) rank() int {
	rank := 0
	if p.Private {
		rank++
	}
	if p.Shadow {
		rank += 2
	}
	return rank
}

// grade returns the limit of a request, and the tier it named if there is none
// of that name.
func (p *policy) grade(r *http.Request) (g *grade, unknown string) {
	if p.Tier == nil {
		return p.base, ""
	}
	tier := p.Tier(r)
	if tier == "" {
		return p.base, ""
	}
	if g, ok := p.tiers[tier]; ok {
		return g, ""
	}
	return p.base, tier
}

func (p *policy) cost(r *http.Request) int64 {
	if p.Cost == nil {
		return 1
	}
	cost := p.Cost(r)
	if p.Late && cost == 0 {
		return 1 // else who owes nothing yet could begin any number of requests
	}
	return cost
}
