package middleware

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
)

// A Middleware enforces policies on the handlers that it wraps. All its
// policies together are one decision: a request is charged to all of them, or,
// if one denies, to none.
//
// It is safe for concurrent use. Wrap as many handlers as you like; they share
// the policies' counts. Do not wrap one handler twice by policies of the same
// name: each of its requests would be charged twice.
type Middleware struct {
	limiter   algorithms.Limiter
	config    atomic.Pointer[config] // of the policies; see Update
	overrides Overrides              // nil: none
	clientIP  keyfunc.Key
	dialect   headers.Dialect
	denied    func(http.ResponseWriter, *http.Request, Verdict) // nil: problem
	observer  Observer
	troubles  troubles
	settler   settler
	doctor    doctor
	made      time.Time

	exempt  []netip.Prefix
	alone   bool // there is no limiter that instances share
	denials denialLog

	closing atomic.Bool
	release chan struct{} // closed by Close, for those who are held
	mu      sync.Mutex    // orders held.Add before Close's held.Wait
	held    sync.WaitGroup
}

// Options tune a [Middleware]. The zero value of each field is a default.
type Options struct {
	// ClientIP finds the address of clients, to whom requests with unknown API
	// keys are charged. The zero Key means the peer, keyfunc.IP(nil): behind a
	// proxy, set it to the IP key of your proxies.
	ClientIP keyfunc.Key

	// Headers are the families of headers that responses carry; 0 means
	// headers.Draft|headers.Triple.
	Headers headers.Dialect

	// Exempt are the addresses, as ClientIP finds them, of health checks and of
	// your own jobs: their requests pass, no policy is asked, no ban holds, and
	// the verdict is Exempt. They are not identified, either, and what they use
	// does not count against capacity. (Policy.Skip leaves one policy out for
	// what it sees in a request; an override that is Off leaves one out for a
	// key, while the service runs; neither makes a verdict Exempt.) Prefixes must
	// be masked, and not be everybody.
	//
	// Not for customers who are to have more, which is a tier or an override: of
	// what is exempt, nothing protects the service.
	Exempt []netip.Prefix

	// Overrides say what holds for keys instead of what the policies say; nil
	// means that nothing does. A limit that New would refuse in the policy's
	// place is logged, and not in force.
	Overrides Overrides

	// Denied answers what is not allowed, with whatever Status the verdict
	// has, which it must write; nil means a short application/problem+json.
	// Limit headers, Retry-After, WWW-Authenticate and Cache-Control: no-store
	// are set before it is called.
	Denied func(http.ResponseWriter, *http.Request, Verdict)

	// Observer is told about every verdict; nil means nobody.
	Observer Observer

	// Logger is told about decisions that could not be made: each message at
	// most once per ten seconds, with the number of those in between; and about
	// mistakes that requests show, once each: see Middleware.Findings. If it is
	// enabled for the debug level, it is also told about the first denial of a
	// key in each minute, about a hundred keys at most. nil means
	// slog.Default().
	Logger *slog.Logger
}

// New returns a middleware that enforces policies with limiter; nil options
// mean the defaults. The error names every mistake of the configuration.
func New(limiter algorithms.Limiter, o *Options, policies ...Policy) (*Middleware, error) {
	if o == nil {
		o = &Options{}
	}
	m := &Middleware{
		limiter: limiter, overrides: o.Overrides, clientIP: o.ClientIP, dialect: o.Headers, denied: o.Denied,
		observer: o.Observer, exempt: slices.Clone(o.Exempt), made: time.Now(),
		release: make(chan struct{}),
	}
	m.settler.made = m.settled
	_, m.alone = limiter.(*algorithms.Memory)
	m.troubles.logger = o.Logger
	if m.troubles.logger == nil {
		m.troubles.logger = slog.Default()
	}
	if m.clientIP.IsZero() {
		m.clientIP = keyfunc.IP(nil)
	}
	c, err := newConfig(policies)
	if err := errors.Join(m.validate(), err); err != nil {
		return nil, err
	}
	m.config.Store(c)
	m.doctor.first.Store(examinedFirst)
	m.meetNeighbours()
	return m, nil
}

// validate returns every mistake of the options at once.
func (m *Middleware) validate() error {
	var errs []error
	if m.limiter == nil {
		errs = append(errs, errors.New("middleware: the limiter is nil"))
	}
	errs = append(errs, lines("middleware: Headers", m.dialect.Validate())...)
	errs = append(errs, lines("middleware: ClientIP", m.clientIP.Validate())...)
	errs = append(errs, validateExempt(m.exempt, m.clientIP))
	return errors.Join(errs...)
}

// lines returns the errors that err joins, each with the prefix, so that every
// mistake can be read alone.
func lines(prefix string, err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{fmt.Errorf("%s: %w", prefix, err)}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, lines(prefix, e)...)
	}
	return all
}

// Must returns v, and panics if err is not nil. It is for constants of the
// program, at start.
func Must[T any](v T, err error) T { return algorithms.Must(v, err) }

// Handler returns a handler that serves with next what the policies allow, and
// answers the rest itself, before the body is read. It panics if next is nil.
//
// A request that a leaky bucket admits is held until its turn. If its client
// hangs up meanwhile, what it took is given back, but for a place in the middle
// of the bucket's queue: those behind have been promised their turns. Over
// HTTP/1.1 net/http notices a hang-up only once the body has been read, so a
// request with a body keeps its place.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	if next == nil {
		panic("middleware: the handler is nil")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, t := m.admit(w, r)
		switch {
		case t != nil:
			t.serve(next, w, r)
		case r != nil:
			next.ServeHTTP(w, r)
		}
	})
}

// admit returns the request with its verdict, and what it may settle later if
// there is any; or nil if it has answered it.
func (m *Middleware) admit(w http.ResponseWriter, r *http.Request) (*http.Request, *tab) {
	d := newDecision()
	defer d.free()
	m.decide(d, r)
	if m.examines() {
		m.examine(d, r)
		m.examineNesting(d, r)
	}
	if d.verdict.Allowed && d.verdict.Delay > 0 {
		m.hold(d, r)
	}
	t := d.open(m)
	m.describe(w.Header(), d, r)
	v := d.verdict
	switch {
	case !v.Allowed && m.denied == nil:
		m.problem(w, d)
		return nil, nil
	case !v.Allowed:
		m.denied(w, r, v)
		return nil, nil
	case d.carrier == nil:
		return r, nil
	}
	d.carrier.Context, d.carrier.verdict = r.Context(), v
	if t != nil {
		t.Context = d.carrier
		return r, t
	}
	return r.WithContext(d.carrier), nil
}

// Check decides and charges as Handler does, and answers nothing: for gRPC,
// WebSockets, and tests. It neither holds nor gives back; the caller honours
// the verdict's Delay.
//
// The error says why there is no decision, when the verdict is a refusal that
// no limit made: an identity that is missing, malformed or unknown (those of
// package keyfunc), a mistake (algorithms.ErrInvalid), the limiter's trouble
// under a policy that fails closed, a context that has ended, or ErrClosed. It
// is nil if a request passes without a decision: its policies' decisions are
// Undecided then.
func (m *Middleware) Check(r *http.Request) (Verdict, error) {
	d := newDecision()
	defer d.free()
	m.decide(d, r)
	if m.examines() {
		m.examine(d, r)
	}
	return d.verdict, d.err
}

// decide fills in the verdict, and tells the observer.
func (m *Middleware) decide(d *decision, r *http.Request) {
	if m.observer == nil {
		d.ask(m, r)
		return
	}
	d.start = time.Since(m.made) // half of time.Now: the wall clock is not read
	d.ask(m, r)
	e := Event{Kind: Decided, Verdict: d.verdict, Err: errors.Join(d.err, d.trouble), Elapsed: time.Since(m.made) - d.start}
	if d.keyless != nil {
		e.Policy = d.keyless.Name
	}
	m.observer.Observe(r.Context(), e)
}
