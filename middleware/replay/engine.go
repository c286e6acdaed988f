// The engine: requests in virtual time, through the real middleware.

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
