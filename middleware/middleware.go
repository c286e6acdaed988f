package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/internal/lent"
	"github.com/penstock-go/penstock/internal/logwriter"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware/internal/comeback"
	"github.com/penstock-go/penstock/middleware/internal/delayed"
	"github.com/penstock-go/penstock/middleware/internal/findings"
	"github.com/penstock-go/penstock/middleware/internal/guess"
	"github.com/penstock-go/penstock/middleware/internal/settle"
	"github.com/penstock-go/penstock/middleware/internal/wrapped"
)

// A Middleware enforces policies on any number of handlers, which share the
// counts. It is safe for concurrent use.
type Middleware struct {
	limiter     algorithms.Limiter
	limiterName string
	config      atomic.Pointer[config] // see Update
	overrides   Overrides              // nil: none
	lends       lends
	clientIP    keyfunc.Key
	noProxies   bool        // ClientIP names no proxies, and is not a keyfunc.Peer of Options
	clientKey   keyfunc.Key // of policies without one
	dialect     headers.Dialect
	refused     func(http.ResponseWriter, *http.Request, Verdict) // nil: answer
	observers   []Observer
	plainKeys   bool
	log         logwriter.Seldom
	settler     settle.Settler
	finder      *findings.Finder
	guesses     *guess.Table
	comeback    *comeback.Table
	replay      replayer // nil: requests are real
	made        time.Time

	exempt []netip.Prefix
	alone  bool // no other instance shares the limiter

	closed    atomic.Bool // by Close
	delayed   *delayed.Requests
	mu        sync.Mutex  // orders Update before Close; guards the fields below
	pending   []EventKind // registrations that no observer has received yet
	reporting bool        // a goroutine reports them
}

// lends says who keeps no key, and so receives keys whose bytes are used again; see package lent.
type lends struct{ limiter, overrides bool }

func init() { lent.To[*algorithms.Memory]() } // algorithms imports the standard library only

// New returns a middleware that enforces policies with limiter. Nil options
// mean the defaults. The error reports every misconfiguration.
func New(limiter algorithms.Limiter, o *Options, policies ...Policy) (*Middleware, error) {
	o = cmp.Or(o, new(Options))
	m := &Middleware{
		limiter: limiter, limiterName: o.LimiterName, overrides: o.Overrides, clientIP: o.ClientIP, dialect: o.Headers,
		refused: o.Refused, observers: slices.Clone(o.Observers), exempt: slices.Clone(o.Exempt), plainKeys: o.PlainKeys, made: time.Now(),
		delayed: delayed.New(), comeback: comeback.New(limiter),
	}
	m.lends = lends{lent.Fits(limiter), lent.Fits(o.Overrides)}
	_, m.alone = wrapped.Find[*algorithms.Memory](limiter)
	m.log.Writer = logwriter.New(o.Logger)
	m.finder = findings.New(m.log.Writer, m.made)
	m.settler.Limiter, m.settler.AtOnce, m.settler.InForce, m.settler.Done = limiter, m.alone, m.inForce, m.settled
	if m.replay, _ = wrapped.Find[replayer](limiter); m.replay != nil {
		m.observers = nil
	}
	if m.limiterName == "" {
		m.limiterName = defaultLimiterName(limiter)
	}
	byPeer := m.clientIP == (keyfunc.Key{})
	m.guesses = guess.New(byPeer) // the peer may be a proxy
	if byPeer {
		// Only a keyfunc.IP is examined for untrusted proxies.
		m.clientIP, m.clientKey, m.noProxies = keyfunc.Peer(), keyfunc.IP(nil), true
	} else {
		info, _ := m.clientIP.Inspect() // validate reports the error
		m.clientKey, m.noProxies = m.clientIP, info.ByClientIP
	}
	c, err := m.newConfig(policies)
	if err := errors.Join(m.validate(), err); err != nil {
		return nil, err
	}
	m.config.Store(c)
	m.pending = append(m.pending, Registered)
	m.announce(context.Background())
	return m, nil
}

// Must returns v, and panics if err is not nil.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Handler passes admitted requests to next, which can flush and hijack, and answers the others without reading their
// bodies. It holds a request that a leaky bucket admits until its turn. If the client hangs up first, all takes are
// returned, except a place in the middle of the queue. Handler panics if next is nil.
//
// If next is a httputil.ReverseProxy, [headers.Gateway] merges the rate limit fields of its upstream with those of m.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	if next == nil {
		panic("ratelimit: the handler is nil")
	}
	if m.replay != nil {
		return m.replay.Handler(m, next)
	}
	if _, forwards := next.(*httputil.ReverseProxy); forwards {
		next = headers.Gateway(next)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, reserved := m.admit(w, r)
		switch {
		case c == nil:
			return
		case reserved != nil:
			reserved.Serve(next, w, r.WithContext(reserved))
		default:
			next.ServeHTTP(w, r.WithContext(c))
		}
		c.end() // not if next panics: others may hold the request then
	})
}

// admit returns the context for the handler. It also returns the request's
// reservations, a context below that, if units may be settled later. It returns nil
// for a request that it has answered.
func (m *Middleware) admit(w http.ResponseWriter, r *http.Request) (*verdictContext, *settle.Reservations) {
	q := newRequest(m, r, true)
	defer q.decide().free()
	if q.verdict.Allowed && q.verdict.Delay > 0 {
		m.delayed.Hold(r.Context(), q.verdict.Delay, q.abandon)
	}
	m.describe(w.Header(), r, q.verdict, &q.scratch)
	if !q.verdict.Allowed {
		m.refuse(w, r, q.verdict)
		return nil, nil
	}
	c := &verdictContext{Context: r.Context(), verdict: q.verdict}
	q.verdict = nil // the context owns it from now on
	if !q.settles {
		return c, nil
	}
	return c, q.reserve(c)
}

// Check decides and charges as Handler does, and leaves the answer to [Middleware.Deny]. It neither holds nor settles:
// if a policy holds, settles or limits concurrent requests, call m.Handler(rest).ServeHTTP(w, r) instead. If a limit in
// force is Concurrent, Check charges nothing, and the error wraps algorithms.ErrInvalid.
//
// The error is the verdict's Err, or nil if the request passes without a decision.
func (m *Middleware) Check(r *http.Request) (Verdict, error) { return inside{m}.CheckAs(r, "", "") }

// Limiter returns the limiter and Options.LimiterName.
func (m *Middleware) Limiter() (name string, limiter algorithms.Limiter) {
	return m.limiterName, m.limiter
}

// Overrides returns Options.Overrides.
func (m *Middleware) Overrides() Overrides { return m.overrides }

// Deny answers a request that Check refused with the verdict v, as Handler would. Call it before the response begins.
// It panics if v allows the request, or is not a verdict of m.
func (m *Middleware) Deny(w http.ResponseWriter, r *http.Request, v Verdict) {
	if v.answering {
		panic("ratelimit: Deny in Options.Refused, which Deny calls: call ratelimit.Refuse")
	}
	v.mustRefuse("Deny")
	m.describe(w.Header(), r, &v, new(scratch))
	m.refuse(w, r, &v)
}

func (q *request) decide() *request {
	if q.identify(); q.refusal.status == 0 && !q.verdict.Exempt {
		q.check()
	}
	q.conclude()
	if !q.looks {
		q.after()
	}
	return q
}

// Policies returns the policies in force, in order, with the client's address
// for the zero Key. Do not change them through their maps or pointers.
func (m *Middleware) Policies() []Policy { return slices.Clone(m.config.Load().given) }

func defaultLimiterName(l algorithms.Limiter) string {
	if counter, ok := wrapped.Find[wrapped.Counter](l); ok && counter.Stats().Shared {
		return "redis"
	}
	return "memory"
}

// A replayer is the limiter of package replay. Its Middlewares decide the requests of
// a log: they answer and hold none, report to no observer, and count denials towards
// bans at once.
type replayer interface {
	Handler(m *Middleware, next http.Handler) http.Handler // instead of the Middleware's own
	User() (id, tier string)                               // of the present request; "" without one
}
