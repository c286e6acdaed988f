// The engine: requests in virtual time, through the real middleware, and what servers settle after a decision.

package replay

import (
	"container/heap"
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
// times. It is the limiter of the middlewares: it counts in memory, and records every decision. It is not safe for
// concurrent use.
type engine struct {
	memory   *algorithms.Memory
	history  *history
	now      int64 // µs since 1970
	handler  http.Handler
	tiers    map[string]string // by user
	policies map[string]*ratelimit.Policy
	walked   map[*chi.Mux]http.Handler // routers of chi, without their handlers
	open     bool                      // a router of chi serves, so handlers need not be known

	user    keyfunc.Identity // of the line
	request http.Request
	reply   reply
	verdict ratelimit.Verdict
	asked   []asked // the checks of the request
	pending queue   // of settlements
	stray   bool    // no route serves the request
	strays  int     // such requests that met no policy
	unknown int     // requests that count as ip=unknown
}

// asked is a check that the limiter answered.
type asked struct {
	policy *ratelimit.Policy // also of a candidate
	key    keyID
	check  algorithms.Check
}

// newEngine returns an engine without a handler. tiers are the tiers of users.
func newEngine(tiers map[string]string) *engine {
	e := &engine{
		tiers: tiers, policies: make(map[string]*ratelimit.Policy), walked: make(map[*chi.Mux]http.Handler), reply: make(reply),
		history: &history{numbers: make(map[seriesID]uint32), ids: make(map[[2]string]keyID)},
		request: http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody, Host: "replay"},
	}
	e.memory = algorithms.NewMemory(&algorithms.MemoryOptions{
		MaxKeys: math.MaxInt32, // a server evicts keys beyond a million; Redis does not
		Now:     func() time.Time { return time.UnixMicro(e.now) },
	})
	return e
}

// decide decides a line, and settles it as its status and its duration tell. A Status of
// the verdict says that it is refused.
func (e *engine) decide(l *entry) ratelimit.Verdict {
	e.prepare(l)
	e.settleUntil(l.Time)
	e.now = max(e.now, l.Time)
	e.verdict, e.asked = ratelimit.Verdict{Allowed: true}, e.asked[:0]
	e.open, e.stray = false, false
	e.handler.ServeHTTP(e.reply, &e.request)
	if e.stray && len(e.asked) == 0 {
		e.strays++
	}
	if l.Unknown && slices.ContainsFunc(e.asked, func(a asked) bool { // a key needed the address
		return strings.Contains(e.history.keys[a.key].text, "ip=unknown")
	}) {
		e.unknown++
	}
	if e.verdict.Allowed {
		e.settle(l)
	}
	return e.verdict
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
	e.user = keyfunc.Identity{ID: l.User, Tier: e.tiers[l.User]}
}

// A reply is a response that no client reads.
type reply http.Header

func (r reply) Header() http.Header         { return http.Header(r) }
func (r reply) Write(p []byte) (int, error) { return len(p), nil }
func (r reply) WriteHeader(int)             {}

// Handler returns what a Middleware with this engine wraps around next.
func (e *engine) Handler(m *ratelimit.Middleware, next http.Handler) http.Handler {
	for _, p := range m.Policies() {
		e.policies[p.Name] = &p
	}
	return &handler{e, m, next}
}

// User returns the user of the log line.
func (e *engine) User() (id, tier string) { return e.user.ID, e.user.Tier }

// Unwrap tells the middlewares that no other instance shares the limiter.
func (e *engine) Unwrap() algorithms.Limiter { return e.memory }

func init() { lent.To[*engine]() }

// Allow implements algorithms.Limiter.
func (e *engine) Allow(ctx context.Context, checks []algorithms.Check) error {
	if err := e.memory.Allow(ctx, checks); err != nil {
		return err
	}
	for i := range checks {
		c := &checks[i]
		name, beside, _ := strings.Cut(c.Policy, "~") // a keyspace beside the policy's, as of bans
		if c.Op >= algorithms.Return || beside != "" && beside != "candidate" {
			continue
		}
		p := e.policies[name]
		if p == nil { // of a Middleware that has wrapped no handler
			p = &ratelimit.Policy{Name: strings.Clone(name)}
		}
		d, pair := verdict(checks, i)
		a := asked{p, e.history.record(e.now, c, d), *c}
		a.check.Key = e.history.keys[a.key].text // the bytes of the other are the request's
		e.asked = append(e.asked, a)
		if pair != "" {
			e.history.series[e.history.keys[a.key].series].pair = pair
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

// A settlement is due at an instant. A hold is renewed until its end, and returned then.
type settlement struct {
	end   int64 // µs; 0 for all others
	check algorithms.Check
}

// settleUntil makes the settlements that are due at an instant.
func (e *engine) settleUntil(instant int64) {
	for e.pending.due(instant) {
		next := heap.Pop(&e.pending).(*place)
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
	_ = e.memory.Allow(context.Background(), checks[:]) // the check was valid before
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
		case a.policy.ChargeIf == nil && a.policy.Cost == nil:
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
	e.pending.add(min(next, end), &settlement{end, c})
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
		e.pending.add(at, &settlement{check: c})
	}
}
