// Tests of the pure stage: evidence in, a verdict out.

package ratelimit

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware/internal/limits"
)

// A caseOf is evidence, made of the answers of one call.
type caseOf struct{ evidence }

// evidenceOf returns the evidence of answered parts.
func evidenceOf(answers ...answer) *caseOf {
	e := new(caseOf)
	for i, a := range answers {
		p := &policy{Policy: Policy{Name: fmt.Sprint("p", i), Capacity: a.capacity, Hidden: a.hidden}}
		l := algorithms.TokenBucket(10, time.Hour)
		part := part{
			policy: p, limit: l, configured: &limits.Limit{Limit: l}, tier: "gold", shadow: a.shadow, banned: a.overridden, denied: a.denied,
			override: a.overridden, guess: a.guess, own: -1, ban: -1, candidate: -1,
		}
		if a.denied == 0 && !a.guess {
			if a.ban != nil {
				part.ban = len(e.checks)
				e.checks = append(e.checks, algorithms.Check{Policy: p.Name + "~ban", Fail: algorithms.FailOpen, Decision: *a.ban})
			}
			part.own = len(e.checks)
			op := algorithms.Take
			if a.shadow {
				op = algorithms.Trial
			}
			e.checks = append(e.checks, algorithms.Check{Policy: p.Name, Op: op, Limit: l, Fail: a.fail, Decision: a.own})
			if a.candidate != nil {
				part.candidate = len(e.checks)
				e.checks = append(e.checks, algorithms.Check{Policy: p.Name + "~candidate", Op: algorithms.TrialInstead, Decision: *a.candidate})
			}
		}
		e.parts = append(e.parts, part)
	}
	e.asked = len(e.checks) > 0
	return e
}

// An answer is the evidence of one policy.
type answer struct {
	own                      algorithms.Decision
	ban, candidate           *algorithms.Decision
	shadow, capacity, hidden bool
	overridden               bool          // by a ban
	guess                    bool          // of an API key
	denied                   time.Duration // without a check
	fail                     algorithms.FailureMode
}

func (e *caseOf) with(edit func(*evidence)) *caseOf {
	edit(&e.evidence)
	return e
}

const (
	shared, local, undecided = algorithms.Shared, algorithms.Local, algorithms.Undecided
	never                    = algorithms.Never
)

// guessed is the evidence of an unknown key. wait is 0 within the allowance.
func guessed(wait time.Duration) answer { return answer{guess: true, denied: wait} }

func allows(s algorithms.Source) answer {
	return answer{own: algorithms.Decision{Allowed: true, Source: s, Remaining: 4}}
}

func denies(s algorithms.Source, wait time.Duration) answer {
	return answer{own: algorithms.Decision{Source: s, RetryAfter: wait}}
}

func (a answer) inShadow() answer   { a.shadow = true; return a }
func (a answer) ofCapacity() answer { a.capacity = true; return a }
func (a answer) banned(s algorithms.Source, wait time.Duration) answer {
	a.ban = &algorithms.Decision{Source: s, RetryAfter: wait}
	return a
}

func (a answer) delayed(d time.Duration) answer { a.own.Delay = d; return a }

var (
	errKey   = errors.New("key")
	errStore = errors.New("down")
	errCheck = fmt.Errorf("cost: %w", algorithms.ErrInvalid)
	second   = time.Second
)

// failed is evidence of a limiter that could not answer: its decisions are zero.
func failed(err error, modes ...algorithms.FailureMode) *caseOf {
	var answers []answer
	for _, mode := range modes {
		answers = append(answers, answer{fail: mode})
	}
	return evidenceOf(answers...).with(func(e *evidence) { e.err = err })
}

func refusedBy(status int) *caseOf {
	return new(caseOf).with(func(e *evidence) {
		e.refusal = refusal{err: errKey, status: status, outcome: OutcomeKeyError, policy: &policy{}}
	})
}

func unknownKey(e *evidence) { e.unknown = keyfunc.ErrUnknown }

// An ask is the wanted verdict, with outcomes in the order of the policies.
type ask struct {
	status   int // 0: allowed
	wait     time.Duration
	delay    time.Duration
	degraded bool
	outcomes string
	err      error
}

func concludeCases() map[string]struct {
	e    *caseOf
	want ask
} {
	type row = struct {
		e    *caseOf
		want ask
	}
	alone := func(e *evidence) { e.alone = true }
	down := func(e *evidence) { e.err = errStore }
	return map[string]row{
		"No policy applies.":                               {evidenceOf(), ask{}},
		"The client is exempt.":                            {evidenceOf().with(func(e *evidence) { e.exempt = true }), ask{}},
		"The shared limiter allows.":                       {evidenceOf(allows(shared)), ask{outcomes: "allowed"}},
		"The shared limiter denies.":                       {evidenceOf(denies(shared, second)), ask{status: 429, wait: second, outcomes: "denied"}},
		"One of two denies.":                               {evidenceOf(allows(shared), denies(shared, second)), ask{status: 429, wait: second, outcomes: "allowed denied"}},
		"The longest wait holds.":                          {evidenceOf(denies(shared, second), denies(shared, 2*second)), ask{status: 429, wait: 2 * second, outcomes: "denied denied"}},
		"Never is the longest wait.":                       {evidenceOf(denies(shared, never), denies(shared, second)), ask{status: 429, wait: never, outcomes: "denied denied"}},
		"Only capacity denies.":                            {evidenceOf(allows(shared), denies(shared, second).ofCapacity()), ask{status: 503, wait: second, outcomes: "allowed denied"}},
		"Two capacities deny.":                             {evidenceOf(denies(shared, 3*second).ofCapacity(), denies(shared, second).ofCapacity()), ask{status: 503, wait: 3 * second, outcomes: "denied denied"}},
		"Capacity and the client deny.":                    {evidenceOf(denies(shared, second), denies(shared, 2*second).ofCapacity()), ask{status: 429, wait: 2 * second, outcomes: "denied denied"}},
		"A shadow denies.":                                 {evidenceOf(allows(shared), denies(shared, second).inShadow()), ask{outcomes: "allowed shadow_denied"}},
		"A shadow of capacity denies.":                     {evidenceOf(allows(shared), denies(shared, second).inShadow().ofCapacity()), ask{outcomes: "allowed shadow_denied"}},
		"A shadow denies a denied request.":                {evidenceOf(denies(shared, second), denies(shared, 5*second).inShadow()), ask{status: 429, wait: second, outcomes: "denied shadow_denied"}},
		"A leaky bucket delays.":                           {evidenceOf(allows(shared).delayed(second), allows(shared).delayed(2*second)), ask{delay: 2 * second, outcomes: "allowed allowed"}},
		"A shadow delays nothing.":                         {evidenceOf(allows(shared), allows(shared).delayed(second).inShadow()), ask{outcomes: "allowed allowed"}},
		"A denied request is not delayed.":                 {evidenceOf(allows(shared).delayed(second), denies(shared, second)), ask{status: 429, wait: second, outcomes: "allowed denied"}},
		"Ban bans.":                                        {evidenceOf(allows(shared).banned(shared, time.Hour)), ask{status: 429, wait: time.Hour, outcomes: "banned"}},
		"Ban bans, and the limit denies longer.":           {evidenceOf(denies(shared, 2*time.Hour).banned(shared, time.Hour)), ask{status: 429, wait: 2 * time.Hour, outcomes: "banned"}},
		"Ban is undecided.":                                {evidenceOf(allows(local).banned(undecided, 0)), ask{degraded: true, outcomes: "degraded_allowed"}},
		"An override bans.":                                {evidenceOf(answer{overridden: true, denied: never}), ask{status: 403, wait: never, outcomes: "banned"}},
		"An override bans in capacity.":                    {evidenceOf(answer{overridden: true, denied: second, capacity: true}), ask{status: 429, wait: second, outcomes: "banned"}},
		"An override bans two keys.":                       {evidenceOf(answer{overridden: true, denied: second}, answer{overridden: true, denied: never}), ask{status: 403, wait: never, outcomes: "banned banned"}},
		"An unknown key is within the allowance.":          {evidenceOf(guessed(0)).with(unknownKey), ask{status: 401, outcomes: "key_error", err: keyfunc.ErrUnknown}},
		"An unknown key beside a policy that allows.":      {evidenceOf(allows(shared), guessed(0)).with(unknownKey), ask{status: 401, outcomes: "allowed key_error", err: keyfunc.ErrUnknown}},
		"An unknown key is not delayed.":                   {evidenceOf(allows(shared).delayed(second), guessed(0)).with(unknownKey), ask{status: 401, outcomes: "allowed key_error", err: keyfunc.ErrUnknown}},
		"An unknown key beside a policy that denies.":      {evidenceOf(denies(shared, second), guessed(0)).with(unknownKey), ask{status: 429, wait: second, outcomes: "denied key_error"}},
		"An unknown key beside a shadow.":                  {evidenceOf(denies(shared, second).inShadow(), guessed(0)).with(unknownKey), ask{status: 401, outcomes: "shadow_denied key_error", err: keyfunc.ErrUnknown}},
		"An unknown key beside a failed limiter.":          {evidenceOf(answer{}, guessed(0)).with(unknownKey).with(down), ask{status: 401, degraded: true, outcomes: "failed_open key_error", err: keyfunc.ErrUnknown}},
		"An unknown key beside a limit that fails closed.": {evidenceOf(answer{fail: algorithms.FailClosed}, guessed(0)).with(unknownKey).with(down), ask{status: 503, degraded: true, outcomes: "failed_closed failed_closed", err: errStore}},
		"A guess is denied.":                               {evidenceOf(guessed(second)).with(unknownKey), ask{status: 429, wait: second, outcomes: "denied"}},
		"A guess is denied in capacity.":                   {evidenceOf(guessed(second).ofCapacity()).with(unknownKey), ask{status: 429, wait: second, outcomes: "denied"}},
		"A guess and a policy deny.":                       {evidenceOf(denies(shared, 2*second), guessed(second)).with(unknownKey), ask{status: 429, wait: 2 * second, outcomes: "denied denied"}},
		"A guess is denied, and the limiter fails.":        {evidenceOf(answer{}, guessed(second)).with(unknownKey).with(down), ask{status: 429, wait: second, degraded: true, outcomes: "degraded_denied denied"}},
		"A key is malformed.":                              {refusedBy(400), ask{status: 400, err: errKey}},
		"A key is missing.":                                {refusedBy(401), ask{status: 401, err: errKey}},
		"A key function fails.":                            {refusedBy(500), ask{status: 500, err: errKey}},
		"A lookup fails.":                                  {refusedBy(503), ask{status: 503, err: errKey}},
		"The limiter fails; all fail local.":               {failed(errStore, algorithms.FailLocal, algorithms.FailLocal), ask{degraded: true, outcomes: "failed_open failed_open", err: errStore}},
		"The limiter fails open.":                          {failed(errStore, algorithms.FailOpen), ask{degraded: true, outcomes: "failed_open", err: errStore}},
		"The limiter fails; one fails closed.":             {failed(errStore, algorithms.FailOpen, algorithms.FailClosed), ask{status: 503, degraded: true, outcomes: "failed_closed failed_closed", err: errStore}},
		"A Memory fails.":                                  {failed(errStore, algorithms.FailLocal).with(alone), ask{outcomes: "failed_open", err: errStore}},
		"The check is invalid.":                            {failed(errCheck, algorithms.FailOpen), ask{status: 500, outcomes: "invalid", err: errCheck}},
		"The check is invalid, and the client hung up.":    {failed(errCheck, algorithms.FailOpen).with(func(e *evidence) { e.ended = true }), ask{status: 500, outcomes: "invalid", err: errCheck}},
		"The client hung up.":                              {failed(errStore, algorithms.FailOpen).with(func(e *evidence) { e.ended = true }), ask{status: 503, outcomes: "cancelled", err: errStore}},
		"This instance allows alone.":                      {evidenceOf(allows(local)), ask{degraded: true, outcomes: "degraded_allowed"}},
		"This instance denies alone.":                      {evidenceOf(denies(local, second)), ask{status: 429, wait: second, degraded: true, outcomes: "degraded_denied"}},
		"A shadow denies alone.":                           {evidenceOf(allows(local), denies(local, second).inShadow()), ask{degraded: true, outcomes: "degraded_allowed shadow_denied"}},
		"A Memory allows.":                                 {evidenceOf(allows(local)).with(alone), ask{outcomes: "allowed"}},
		"A Memory denies.":                                 {evidenceOf(denies(local, second)).with(alone), ask{status: 429, wait: second, outcomes: "denied"}},
		"A Memory is full.":                                {evidenceOf(denies(undecided, second)).with(alone), ask{status: 429, wait: second, outcomes: "denied"}},
		"A failure mode passes.":                           {evidenceOf(allows(undecided)), ask{degraded: true, outcomes: "failed_open"}},
		"A denial is known; one is not asked.":             {evidenceOf(allows(undecided), denies(shared, second)), ask{status: 429, wait: second, outcomes: "unasked denied"}},
		"The candidate says nothing.":                      {evidenceOf(answer{own: allows(shared).own, candidate: &algorithms.Decision{Source: shared, RetryAfter: second, Delay: second}}), ask{outcomes: "allowed"}},
	}
}

// TestConclude: the verdict follows from the evidence alone, and leaves it as it is.
func TestConclude(t *testing.T) {
	for name, tt := range concludeCases() {
		t.Run(name, func(t *testing.T) {
			e := tt.e.evidence
			before := e
			before.parts, before.checks = slices.Clone(e.parts), slices.Clone(e.checks)
			var verdicts [2]Verdict
			var whys [2]refusal
			for i := range verdicts {
				whys[i] = e.conclude(&verdicts[i], make([]PolicyVerdict, len(e.parts)))
			}
			if !reflect.DeepEqual(verdicts[0], verdicts[1]) || whys[0] != whys[1] {
				t.Errorf("got %+v, %+v and then %+v, %+v of the same evidence", verdicts[0], whys[0], verdicts[1], whys[1])
			}
			if !reflect.DeepEqual(e, before) {
				t.Errorf("got evidence %+v afterwards, want %+v", e, before)
			}
			wantVerdict(t, &verdicts[0], whys[0], &e, tt.want)
		})
	}
}

// wantVerdict compares a verdict and its refusal with what a case wants.
func wantVerdict(t *testing.T, v *Verdict, why refusal, e *evidence, want ask) {
	t.Helper()
	var outcomes []string
	for i, p := range v.Policies {
		outcomes = append(outcomes, p.Outcome.String())
		a := e.parts[i]
		if p.Name != a.policy.Name || p.Tier != "gold" || p.Limit != a.limit || p.Shadow != a.shadow ||
			p.Override != a.override || p.Hidden != (a.policy.Hidden || a.policy.Capacity) {
			t.Errorf("got policy %+v, want the figures of its part %+v", p, a)
		}
		if banned := a.banned || a.ban >= 0 && a.deniedByBan(e.checks); p.Banned != banned || banned && p.Decision.Allowed {
			t.Errorf("got policy %+v, want banned %t", p, banned)
		}
	}
	got := ask{v.Status, v.RetryAfter, v.Delay, v.Degraded, strings.Join(outcomes, " "), why.err}
	if got != want || v.Allowed != (want.status == 0) || v.Exempt != e.exempt {
		t.Errorf("got %+v, allowed %t, exempt %t; want %+v", got, v.Allowed, v.Exempt, want)
	}
	if why.err != nil && why.status != want.status {
		t.Errorf("got a refusal with status %d, want %d", why.status, want.status)
	}
	if e.err != nil && v.Allowed && !v.Policies[0].Decision.Allowed {
		t.Errorf("got %+v of a request that passes without a decision, want its decisions allowed", v.Policies[0].Decision)
	}
}
