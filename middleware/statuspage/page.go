// Package statuspage, which a minor version may change, shows operators the rate limits of one instance. It begins
// with what is denied, by which policies, for which clients, and whether Redis
// is up. It lists the policies, the last minute of each, the clients denied
// most often, and configuration problems.
//
// The badge is green unless Redis is down, most requests are denied, a policy is in
// shadow or off for everyone, or a problem is open.
//
//	page := statuspage.New(nil)
//	opts := &ratelimit.Options{Observers: []ratelimit.Observer{page}}
//	limited := ratelimit.Must(ratelimit.New(limiter, opts, policies...))
//	r.With(operatorsOnly).Method("GET", "/status", page)
//
// Mount the page behind your authentication. It reveals your limits, and the
// keys of clients where Options.PlainKeys is set.
package statuspage

import (
	"context"
	"maps"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/internal/recent"
)

// A Page is an http.Handler that shows Middlewares, and their Observer. The
// zero value does not work. List it in the Options.Observers of each Middleware
// that it shall show. A Middleware vanishes from the page when it is closed,
// and a policy when an Update removes it.
//
// While requests come, a goroutine looks at the limiters every five seconds, and then
// ends. A Page is safe for concurrent use.
type Page struct {
	made      time.Time
	instance  instance
	console   string
	noticed   noticed
	decisions *recent.Minute // of all Middlewares
	rendered  rendered

	// outcomes are counts by policy and outcome. The map is copied to change it.
	outcomes atomic.Pointer[map[policyOf]*recent.Minute]

	mu          sync.Mutex // guards middlewares, and changes of outcomes
	middlewares []*ratelimit.Middleware
}

var (
	_ ratelimit.Observer = (*Page)(nil)
	_ http.Handler       = (*Page)(nil)
)

// A policyOf is a policy of one Middleware. Policies of several Middlewares can
// have the same name.
type policyOf struct {
	middleware *ratelimit.Middleware
	name       string
}

// Page.decisions counts durations by source and bucket, and after these the
// requests, the refused requests, and the requests that a policy denied.
const (
	sources         = int(algorithms.Local) + 1
	countedRequests = sources * recent.Buckets
	countedRefused  = countedRequests + 1
	countedDenied   = countedRefused + 1
	counted         = countedDenied + 1
)

// An instance is this process.
type instance struct {
	Name    string    `json:"name"` // of the host
	PID     int       `json:"pid"`
	Version string    `json:"version,omitempty"` // of the program
	Go      string    `json:"go"`
	Started time.Time `json:"started"` // when the page was made
}

// Options tune a [Page]. The zero value of each field is a default.
type Options struct {
	// Console begins a shell command that calls console.Handler, up to its path:
	//
	//	curl -H "Authorization: Bearer $TOKEN" https://ops.example.com/admin
	//
	// With it, the page shows commands that say why a client is denied, and that ban
	// it. If it ends with a URL, as here, the page links there, too.
	Console string
}

// New returns a page. Nil options mean the defaults.
func New(o *Options) *Page {
	if o == nil {
		o = &Options{}
	}
	p := &Page{made: time.Now(), console: o.Console, decisions: recent.NewMinute(counted, step, 0)}
	p.noticed.healthy = p.made.UTC()
	p.instance = instance{PID: os.Getpid(), Go: runtime.Version(), Started: p.made.UTC()}
	p.instance.Name, _ = os.Hostname()
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "(devel)" {
		p.instance.Version = info.Main.Version
	}
	p.outcomes.Store(&map[policyOf]*recent.Minute{})
	return p
}

// Observe implements [ratelimit.Observer].
func (p *Page) Observe(_ context.Context, e ratelimit.Event) {
	switch e.Kind {
	case ratelimit.Decided:
		p.decided(&e)
	case ratelimit.Registered:
		p.register(e.Middleware)
	case ratelimit.Unregistered:
		p.unregister(e.Middleware)
	}
}

func (p *Page) decided(e *ratelimit.Event) {
	v, now, outcomes := &e.Verdict, time.Since(p.made), *p.outcomes.Load()
	defer p.lookSoon(now)
	count := func(policy string, outcome ratelimit.Outcome) {
		if counts := outcomes[policyOf{e.Middleware, policy}]; counts != nil {
			counts.Add(int(outcome), now)
		}
	}
	p.decisions.Add(countedRequests, now)
	if !v.Allowed {
		p.decisions.Add(countedRefused, now)
	}
	if e.Policy != "" { // its key is an error, so the verdict does not hold it
		count(e.Policy, ratelimit.OutcomeKeyError)
	}
	// A limiter of another module may report a source that does not exist.
	if source := int(min(v.Source(), algorithms.Local)); v.Asked() {
		p.decisions.Add(source*recent.Buckets+recent.Bucket(e.Elapsed), now)
	}
	for i := range v.Policies {
		count(v.Policies[i].Name, v.Policies[i].Outcome)
	}
	if v.Result() == "denied" {
		p.decisions.Add(countedDenied, now)
	}
}

func (p *Page) register(m *ratelimit.Middleware) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.middlewares, m) {
		p.middlewares = append(p.middlewares, m)
	}
	p.setPolicies(m, m.Policies())
}

func (p *Page) unregister(m *ratelimit.Middleware) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.middlewares = slices.DeleteFunc(p.middlewares, func(other *ratelimit.Middleware) bool { return other == m })
	p.setPolicies(m, nil)
}

// setPolicies replaces the policies of a Middleware whose outcomes are counted.
// Policies that stay keep their counts. It requires mu.
func (p *Page) setPolicies(m *ratelimit.Middleware, policies []ratelimit.Policy) {
	old := *p.outcomes.Load()
	all := maps.Clone(old)
	maps.DeleteFunc(all, func(key policyOf, _ *recent.Minute) bool { return key.middleware == m })
	for i := range policies {
		key := policyOf{m, policies[i].Name}
		counts := old[key]
		if counts == nil {
			counts = recent.NewMinute(outcomes, step, time.Since(p.made))
		}
		all[key] = counts
	}
	p.outcomes.Store(&all)
}
