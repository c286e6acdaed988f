// The engine: requests in virtual time, through the real middleware, and what servers settle after a decision. Its limiter
// sees every check of the middlewares.

package replay

import (
	"context"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/lent"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// An engine decides the requests of a log, each at its own instant, in the order of their
// times. It is not safe for concurrent use.
type engine struct {
	limiter  *limiter
	now      int64 // µs since 1970
	handler  http.Handler
	tiers    map[string]string // by user
	policies map[string]*ratelimit.Policy
	walked   map[*chi.Mux]http.Handler // routers of chi, without their handlers
	open     bool                      // a router of chi serves, so handlers need not be known

	identity *identity
	request  http.Request
	reply    reply
	verdict  ratelimit.Verdict
	asked    []asked // the checks of the request
	settles  bool    // some of them may be settled
	pending  queue   // of settlements
	stray    bool    // no route serves the request
	strays   int     // such requests that met no policy
	unknown  int     // requests that count as ip=unknown
}

// asked is a check that the limiter answered.
type asked struct {
	policy *ratelimit.Policy // also of a candidate
	key    keyID
	cost   int64
	check  algorithms.Check // only of policies that settle
}

// newEngine returns an engine without a handler. tiers are the tiers of users.
func newEngine(tiers map[string]string) *engine {
	e := &engine{tiers: tiers, policies: make(map[string]*ratelimit.Policy), walked: make(map[*chi.Mux]http.Handler), reply: make(reply), identity: &identity{Context: context.Background()}}
	e.limiter = &limiter{engine: e, memory: algorithms.NewMemory(&algorithms.MemoryOptions{
		MaxKeys: math.MaxInt32, // a server evicts keys beyond a million; Redis does not
		Now:     e.clock,
	}), history: newHistory()}
	e.request = *(&http.Request{
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody, Host: "replay",
	}).WithContext(e.identity)
	return e
}

func (e *engine) clock() time.Time { return time.UnixMicro(e.now) }

// decide decides a line, and settles it as its status and its duration tell. A Status of
// the verdict says that it is refused.
func (e *engine) decide(l *entry) ratelimit.Verdict {
	e.prepare(l)
	e.settleUntil(l.Time)
	e.now = max(e.now, l.Time)
	e.verdict, e.asked = ratelimit.Verdict{Allowed: true}, e.asked[:0]
	e.settles, e.open, e.stray = false, false, false
	e.handler.ServeHTTP(e.reply, &e.request)
	if e.stray && len(e.asked) == 0 {
		e.strays++
	}
	if l.Unknown && slices.ContainsFunc(e.asked, e.countsUnknown) {
		e.unknown++
	}
	if e.verdict.Allowed && e.settles {
		e.settle(l)
	}
	return e.verdict
}

// countsUnknown reports whether a key needed an address that the line does not have.
func (e *engine) countsUnknown(a asked) bool {
	return strings.Contains(e.limiter.history.keys[a.key].text, "ip=unknown")
}

// prepare writes the request of a line. Requests share one http.Request, because no
// middleware keeps it.
func (e *engine) prepare(l *entry) {
	r := &e.request
	r.URL, r.Method, r.RequestURI, r.Pattern = l.url, l.Method, l.Path, ""
	r.RemoteAddr = net.JoinHostPort(l.Address, "1")
	if r.Header == nil || len(r.Header) > 0 {
		r.Header = make(http.Header)
	}
	clear(e.reply)
	e.identity.ID, e.identity.Tier = l.User, ""
	if l.User != "" {
		e.identity.Tier = e.tiers[l.User]
	}
}

// An identity is the context of requests. It names the user of the log.
type identity struct {
	context.Context
	keyfunc.Identity
}

// A reply is a response that no client reads.
type reply http.Header

func (r reply) Header() http.Header         { return http.Header(r) }
func (r reply) Write(p []byte) (int, error) { return len(p), nil }
func (r reply) WriteHeader(int)             {}

// A limiter counts in memory at the engine's instants, and records every decision.
type limiter struct {
	engine  *engine
	memory  *algorithms.Memory
	history *history
}

// Handler returns what a Middleware with this limiter wraps around next.
func (l *limiter) Handler(m *ratelimit.Middleware, next http.Handler) http.Handler {
	for _, p := range m.Policies() {
		l.engine.policies[p.Name] = &p
	}
	return &handler{l.engine, m, next}
}

// User returns the user of the log line.
func (l *limiter) User() (id, tier string) { return l.engine.identity.ID, l.engine.identity.Tier }

// Unwrap tells the middlewares that no other instance shares the limiter.
func (l *limiter) Unwrap() algorithms.Limiter { return l.memory }

func init() { lent.To[*limiter]() }

// Allow implements algorithms.Limiter.
func (l *limiter) Allow(ctx context.Context, checks []algorithms.Check) error {
	if err := l.memory.Allow(ctx, checks); err != nil {
		return err
	}
	for i := range checks {
		c := &checks[i]
		if c.Op >= algorithms.Return || isBan(c.Policy) {
			continue
		}
		e := l.engine
		e.asked = append(e.asked, asked{cost: c.Cost})
		a := &e.asked[len(e.asked)-1]
		d, pair := verdict(checks, i)
		a.policy, a.key = l.history.record(e.now, c, d, e.policies)
		if pair != "" {
			l.history.series[l.history.keys[a.key].series].pair = pair
		}
		if p := a.policy; c.Decision.Receipt.Units() > 0 && (p.ChargeIf != nil || p.Cost != nil || c.Limit.Algorithm().Concurrent()) {
			a.check, e.settles = *c, true
			a.check.Key = l.history.keys[a.key].text // the bytes of the other are the request's
		}
	}
	return nil
}

// verdict returns the decision of a check, and what pairs it with another: "ShareBy", "After" or "".
// One decision speaks for the pair.
func verdict(checks []algorithms.Check, i int) (d *algorithms.Decision, pair string) {
	c := &checks[i]
	switch {
	case i+1 < len(checks) && checks[i+1].Op == algorithms.TakeElse:
		return &checks[i+1].Decision, "After"
	case c.Op == algorithms.TakeElse:
		return &c.Decision, "After"
	case i > 0 && checks[i-1].Policy == c.Policy+"~share":
		if share := &checks[i-1]; c.Op == algorithms.Trial && share.Decision.Allowed { // a shadow's trials know nothing of each other
			return &share.Decision, "ShareBy"
		}
		return &c.Decision, "ShareBy"
	}
	return &c.Decision, ""
}

// isBan reports whether a keyspace beside a policy's counts bans.
func isBan(policy string) bool {
	_, beside, _ := strings.Cut(policy, "~")
	return beside != "" && beside != "candidate"
}

// A settlement is due at an instant. A hold is renewed until its end, and returned then.
type settlement struct {
	end   int64 // µs; 0 for all others
	check algorithms.Check
}

// settleUntil makes the settlements that are due at an instant.
func (e *engine) settleUntil(instant int64) {
	for e.pending.due(instant) {
		next := e.pending.pop()
		s := next.what.(*settlement)
		e.now = max(e.now, next.at)
		if next.at < s.end {
			s.check.Op = algorithms.Renew
			e.hold(s.check, next.at, s.end)
		} else if s.end > 0 {
			s.check.Op = algorithms.Return
		}
		e.make(s.check)
	}
}

func (e *engine) make(c algorithms.Check) {
	checks := [1]algorithms.Check{c}
	_ = e.limiter.memory.Allow(context.Background(), checks[:]) // the check was valid before
}

func (e *engine) plan(at, end int64, c algorithms.Check) {
	e.pending.push(at, &settlement{end, c})
}

// settle plans the settlements of an admitted request.
func (e *engine) settle(l *entry) {
	end := l.Time + l.Duration.Microseconds()
	for i := range e.asked {
		a := &e.asked[i]
		switch {
		case a.check.Decision.Receipt.Units() == 0:
		case a.check.Limit.Algorithm().Concurrent():
			e.hold(a.check, l.Time, end)
		case l.Settled != nil:
			for _, s := range l.Settled {
				if s.Policy == a.check.Policy {
					e.settleUnits(a.check, s.Units, s.At.UnixMicro())
				}
			}
		default:
			e.settleUnits(a.check, l.settled(a.policy, a.check.Cost), end)
		}
	}
}

// renewals is how often a middleware renews a hold before it would end.
const renewals = 3

func (e *engine) hold(c algorithms.Check, from, end int64) {
	next := from + max(c.Limit.Window()/renewals, time.Second/renewals).Microseconds()
	e.plan(min(next, end), end, c)
}

// settleUnits charges units at an instant, or returns them if they are negative.
func (e *engine) settleUnits(c algorithms.Check, units, at int64) {
	if c.Op, c.Cost = algorithms.Force, units; units < 0 {
		c.Op, c.Cost = algorithms.Return, -units
	}
	switch {
	case units == 0:
	case at <= e.now:
		e.make(c)
	default:
		e.plan(at, 0, c)
	}
}
