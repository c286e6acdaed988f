// The Engine: requests in virtual time, through the real middleware.

package replay

import (
	"context"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// An Engine decides the requests of a log, each at its own instant. Make the
// middlewares with its Limiter, wrap handlers by its Check, and Serve lines in the order
// of their times. It is not safe for concurrent use.
type Engine struct {
	limiter  *limiter
	now      int64 // µs since 1970
	handler  http.Handler
	plans    map[string]string // by user
	policies map[string]*ratelimit.Policy

	identity *identity
	request  http.Request
	url      url.URL
	reply    reply
	verdict  ratelimit.Verdict
	asked    []asked // the checks of the request
	settles  bool    // some of them may be settled
	pending  settlements
	planned  int64 // settlements so far
	strays   int   // requests that no route served
	unknown  int   // requests without a user and without an IP address
}

// asked is a check that the limiter answered.
type asked struct {
	policy *ratelimit.Policy // also of a candidate
	key    keyID
	cost   int64
	check  algorithms.Check // only of policies that settle
}

// NewEngine returns an Engine without a handler. plans are the plans of users.
func NewEngine(plans map[string]string) *Engine {
	e := &Engine{plans: plans, policies: make(map[string]*ratelimit.Policy), identity: &identity{Context: context.Background()}}
	e.limiter = &limiter{engine: e, memory: algorithms.NewMemory(&algorithms.MemoryOptions{
		MaxKeys: math.MaxInt32, // a server evicts keys beyond a million; Redis does not
		Now:     e.clock,
	}), history: newHistory()}
	e.request = *(&http.Request{
		URL: &e.url, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody, Host: "replay",
	}).WithContext(e.identity)
	return e
}

func (e *Engine) clock() time.Time { return time.UnixMicro(e.now) }

// Limiter returns the limiter for the middlewares. It counts in memory, in virtual time.
func (e *Engine) Limiter() algorithms.Limiter { return e.limiter }

// Check returns a middleware that decides requests as m.Handler does. It neither answers
// nor holds a request: a log has its response already. The policies of m must have no
// Ban, because a Middleware counts denials towards bans in goroutines of its own.
func (e *Engine) Check(m *ratelimit.Middleware) func(http.Handler) http.Handler {
	for _, p := range m.Policies() {
		e.policies[p.Name] = &p
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			v, _ := m.Check(r) // an error is in the status
			if !v.Allowed {
				e.verdict = v
				return
			}
			if len(e.verdict.Policies) > 0 { // of an outer middleware
				v.Policies = append(e.verdict.Policies, v.Policies...)
			}
			e.verdict = v
			next.ServeHTTP(w, r)
		})
	}
}

// Handle sets the handler of requests: a router whose routes Check wraps.
func (e *Engine) Handle(h http.Handler) { e.handler = h }

// Serve decides a line, and settles it as its status and its duration tell. A Status of
// the verdict says that it is refused. Serve reports false if the line is no request
// that a server would route.
func (e *Engine) Serve(l *Line) (v ratelimit.Verdict, ok bool) {
	if !e.prepare(l) {
		return ratelimit.Verdict{}, false
	}
	e.settleUntil(l.Time)
	e.now = max(e.now, l.Time)
	e.verdict, e.asked = ratelimit.Verdict{Allowed: true}, e.asked[:0]
	e.settles = false
	e.handler.ServeHTTP(&e.reply, &e.request)
	if e.verdict.Allowed && e.settles {
		e.settle(l)
	}
	return e.verdict, true
}

// prepare writes the request of a line. Requests share one http.Request, because no
// middleware keeps it.
func (e *Engine) prepare(l *Line) bool {
	if l.url == nil && l.parseURL() != nil {
		return false
	}
	e.url = *l.url
	r := &e.request
	r.Method, r.RequestURI, r.Pattern = l.Method, l.Path, ""
	address, ok := ipOf(l.Address)
	if !ok && l.User == "" {
		e.unknown++
	}
	r.RemoteAddr = net.JoinHostPort(address, "1")
	if r.Header == nil || len(r.Header) > 0 {
		r.Header = make(http.Header)
	}
	clear(e.reply.header)
	e.identity.ID, e.identity.Tier = l.User, ""
	if l.User != "" {
		e.identity.Tier = e.plans[l.User]
	}
	return true
}

// ipOf returns the IP address in the address of a line, and whether there is one. Servers
// also log a port, the brackets of IPv6, or a prefix that counts as one client.
func ipOf(address string) (string, bool) {
	if _, err := netip.ParseAddr(address); err == nil {
		return address, true
	}
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	address, _, _ = strings.Cut(address, "/")
	address = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
	_, err := netip.ParseAddr(address)
	return address, err == nil
}

// An identity is the context of requests. It names the user of the log, and the route
// that mount has found.
type identity struct {
	context.Context
	keyfunc.Identity
	route string
}

type identityKey struct{}

func (i *identity) Value(key any) any {
	if key == (identityKey{}) {
		return i
	}
	return i.Context.Value(key)
}

// User returns the user of a replayed request, with the user's plan. It reports false
// for every other request. It is for keyfunc.User, and for lookups of API keys.
func User(ctx context.Context) (keyfunc.Identity, bool) {
	i, ok := ctx.Value(identityKey{}).(*identity)
	if !ok || i.ID == "" {
		return keyfunc.Identity{}, false
	}
	return i.Identity, true
}

// A reply is a response that no client reads.
type reply struct{ header http.Header }

func (r *reply) Header() http.Header {
	if r.header == nil {
		r.header = make(http.Header)
	}
	return r.header
}
func (r *reply) Write(p []byte) (int, error) { return len(p), nil }
func (r *reply) WriteHeader(int)             {}
