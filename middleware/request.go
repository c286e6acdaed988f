// One request and its way through the middleware:
//
//	identify → check → conclude → after → respond
//
// identify finds the parts: for each policy the key, the limit and the cost.
// check asks the limiter, in one call. conclude makes the verdict. after draws
// the consequences: observers, denials, bans, findings. respond writes the
// response.

package ratelimit

import (
	"net/http"
	"sync"
	"time"
	"unsafe"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware/internal/limits"
)

// A request is the work on one http.Request. It is pooled; only its verdict may
// outlive it.
type request struct {
	m      *Middleware
	config *config         // decides and answers it
	http   keyfunc.Request // the request, and the shared state of its keys
	start  time.Duration   // since m was made; 0 without observers

	keys   []byte // of all parts, one after the other
	parts  []part
	checks []algorithms.Check
	kinds  limits.Kinds // of limits that the request meets

	unknown error   // a key is unknown; the last part is the address's
	asking  *policy // whose key is being found
	guesser guesser
	banned  bool    // an override bans a key: no check is made
	shadows bool    // a part is in shadow
	settles bool    // units may be returned or forced after the decision
	handled bool    // by a Handler; otherwise Check decides
	looks   bool    // asks what is left, and charges nothing
	err     error   // of the limiter
	refusal refusal // if a policy did not decide

	scratch scratch
	verdict *Verdict // nil: a handler has it
}

// A part is one policy's part of a request.
type part struct {
	policy     *policy
	tier       string           // of the identity, if the policy has it
	limit      algorithms.Limit // in force
	configured *limits.Limit    // the limit of the configuration; nil if an override or LimitOf chose it
	limitOf    bool             // LimitOf did
	concurrent bool             // the limit is Concurrent
	cost       int64

	override    bool          // an override applies
	shadow      bool          // the policy denies nothing
	unknownTier bool          // Policy.Tiers lacks the identity's tier
	banned      bool          // an override bans the key
	guess       bool          // an API key is unknown: the limiter is not asked
	denied      time.Duration // the wait, if the part is denied without a check; otherwise 0

	start, end int // of its key in request.keys

	tenant   tenant // who shares the limit
	borrowed bool   // the share of the tenant does not fit
	spared   bool   // the other policy of its pair speaks

	own, ban, candidate, share int // the places of its checks in request.checks; -1: none
}

// A refusal says why a request is refused, or passes, without a decision.
type refusal struct {
	err     error
	status  int     // 0: the request passes
	outcome Outcome // of all policies
	policy  *policy // whose key is an error
}

var requests = sync.Pool{New: func() any { return new(request) }}

func newRequest(m *Middleware, r *http.Request, handled bool) *request {
	q := requests.Get().(*request)
	q.m, q.config, q.handled, q.verdict = m, m.config.Load(), handled, verdicts.Get().(*Verdict)
	q.http.Request, q.http.ClientIP = r, m.clientIP
	if m.replay != nil {
		id, tier := m.replay.User()
		q.http.Identify(id, tier)
	}
	if len(m.observers) > 0 {
		q.start = time.Since(m.made) // half of time.Now: the wall clock is not read
	}
	return q
}

// free gives q back to the pool, without anything of the http.Request. The
// slices keep values that belong to the middleware or to q itself. The next
// request overwrites them before it reads them; clearing them would double the
// work.
func (q *request) free() {
	q.http = keyfunc.Request{}
	q.keys, q.parts, q.checks = q.keys[:0], q.parts[:0], q.checks[:0]
	q.unknown, q.banned, q.shadows, q.settles, q.handled, q.looks, q.err, q.refusal = nil, false, false, false, false, false, nil, refusal{}
	if q.verdict != nil {
		q.verdict.free()
	}
	q.verdict, q.start = nil, 0
	if q.asking = nil; len(q.guesser.address) > 0 {
		q.guesser = guesser{address: q.guesser.address[:0]}
	}
	requests.Put(q)
}

// key returns the key of a part without copying it: the limiter does not keep
// the bytes of keys, and q.keys does not change until q is freed.
func (q *request) key(p *part) string { return q.text(p.start, p.end) }

func (q *request) text(start, end int) string {
	return unsafe.String(unsafe.SliceData(q.keys), len(q.keys))[start:end]
}
