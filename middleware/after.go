// The fourth stage: the consequences of a verdict. A request has them once.

package ratelimit

import (
	"context"
	"hash/maphash"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/internal/topk"
)

// after draws the consequences of the verdict.
func (q *request) after() {
	if q.refusal.err != nil {
		q.logFailure()
	}
	if q.unknown != nil {
		q.afterGuess()
	}
	shadowDenied := func(p PolicyVerdict) bool { return p.Outcome == OutcomeShadowDenied }
	if !q.verdict.Allowed || q.shadows && slices.ContainsFunc(q.verdict.Policies, shadowDenied) {
		q.countDenials()
		if !q.handled || q.m.refused != nil || len(q.m.observers) > 0 { // else no function of the service sees them
			for i := range q.verdict.Policies {
				q.verdict.Policies[i].Key = q.m.show(q.subject(&q.parts[i]))
			}
		}
	}
	q.countNear()
	if len(q.checks) > len(q.parts) || q.unknown != nil { // else no policy has a candidate
		q.countCandidates()
	}
	if len(q.m.observers) > 0 {
		q.report()
	}
	q.examine()
}

func (q *request) logFailure() {
	why := &q.refusal
	switch {
	case why.outcome == OutcomeKeyError && why.status == http.StatusInternalServerError:
		q.m.log.Warn("key function failure", why.policy.Name, why.err)
	case why.outcome == OutcomeKeyError && why.status == http.StatusServiceUnavailable && q.http.Context().Err() == nil:
		q.m.log.Warn("identity lookup failure", why.policy.Name, why.err)
	case why.outcome == OutcomeInvalid:
		q.m.log.Warn("invalid check", "", why.err)
	case why.outcome == OutcomeFailedClosed:
		q.m.log.Warn("fail-closed refusal", q.undecidedPolicy(), why.err)
	case why.outcome == OutcomeFailedOpen:
		q.m.log.Warn("fail-open admission", q.undecidedPolicy(), why.err)
	}
}

// undecidedPolicy returns the name of the first policy that should have decided. If the request is refused, that is one
// that fails closed. A policy in shadow is named only if all are in shadow.
func (q *request) undecidedPolicy() string {
	i := slices.IndexFunc(q.parts, func(a part) bool {
		return !a.shadow && (a.policy.Fail == algorithms.FailClosed || q.verdict.Allowed)
	})
	return q.parts[max(0, i)].policy.Name
}

// countDenials remembers the keys that were denied, and counts denials towards
// bans.
func (q *request) countDenials() {
	for i := range q.verdict.Policies {
		a, p := &q.parts[i], &q.verdict.Policies[i]
		if p.Decision.Allowed || p.spared || q.refusal.err != nil || a.own >= 0 && !p.Banned && p.Decision.Source == algorithms.Undecided {
			continue
		}
		q.tally(a, a.policy.denied)
		if a.own >= 0 && a.policy.bans != nil && !a.shadow && !p.Banned && !q.verdict.Allowed {
			q.m.countTowardsBan(a.policy, strings.Clone(q.key(a))) // its bytes are the request's
		}
	}
}

// countCandidates remembers the keys that candidates would deny.
func (q *request) countCandidates() {
	for i := range q.parts {
		a := &q.parts[i]
		if a.candidate < 0 {
			continue
		}
		if d := &q.checks[a.candidate].Decision; !d.Allowed && d.Source != algorithms.Undecided {
			q.tally(a, a.policy.wouldDeny)
		}
	}
}

func (q *request) tally(a *part, t *topk.Tally) {
	var note *topk.Note
	if a.limitOf || a.tier != "" {
		note = &topk.Note{Tier: a.tier}
	}
	if a.limitOf {
		note.LimitOf = a.limit
	}
	now := q.start
	if now == 0 {
		now = time.Since(q.m.made)
	}
	key := q.subject(a)
	t.Add(maphash.String(keySeed, key), key, note, now)
}

// keySeed makes the hashes that distinguish keys. All Middlewares of the
// process share it, and clients cannot foresee the hashes.
var keySeed = maphash.MakeSeed()

// report reports the verdict to the observers, and the candidates that diverge
// from it.
func (q *request) report() {
	ctx := q.http.Context()
	if q.refusal.err == nil {
		q.reportDivergences(ctx)
	}
	e := Event{Kind: Decided, Verdict: q.verdict.clone(), Err: q.refusal.err, Elapsed: time.Since(q.m.made) - q.start}
	if q.refusal.policy != nil {
		e.Policy = q.refusal.policy.Name
	}
	q.m.observe(ctx, &e)
}

func (q *request) reportDivergences(ctx context.Context) {
	for i := range q.parts {
		a := &q.parts[i]
		if a.candidate < 0 {
			continue
		}
		live, candidate := &q.checks[a.own].Decision, &q.checks[a.candidate].Decision
		if live.Source == algorithms.Undecided || candidate.Source == algorithms.Undecided || live.Allowed == candidate.Allowed {
			continue
		}
		q.m.observe(ctx, &Event{Kind: Diverged, Policy: a.policy.Name, Live: *live, Candidate: *candidate, Key: q.m.show(q.key(a))})
	}
}
