// How long findings last, and their lines in the log.

package findings

import (
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/logwriter"
)

const (
	sampledFirst = 1000
	sampledEvery = 64
	sampledAgain = 64 // requests in a row, at most once per second

	forwardedFor = 16        // forwarded requests in a row
	freshAfter   = 1000      // requests whose keys all differ
	judgedAfter  = 100       // requests with an unknown or a hidden route, endings without a status, or instant holds
	lasts        = time.Hour // after the last request that showed the cause
	instant      = 10 * time.Microsecond
)

// A Finder finds misconfigurations of one Middleware. It is safe for concurrent use.
type Finder struct {
	log   *logwriter.Writer
	made  time.Time
	first atomic.Int32 // requests that are all sampled yet
	again atomic.Int64 // second after made in which first was last set
}

// New returns a Finder. The instants of its findings count from made.
func New(log *logwriter.Writer, made time.Time) *Finder {
	f := &Finder{log: log, made: made}
	f.first.Store(sampledFirst)
	return f
}

// Samples reports whether to look at all of a request: the first 1 000, then one of
// 64, and the 64 requests after it unless there were such in this second. So a
// service with ten requests per second shows some hundred of them each minute, and a
// busy one pays for few. It draws a random number, because all requests would
// contend for a counter.
func (f *Finder) Samples() bool {
	if f.first.Load() > 0 {
		f.first.Add(-1)
		return true
	}
	if rand.Uint32()%sampledEvery != 0 {
		return false
	}
	if now := int64(time.Since(f.made) / time.Second); f.again.Swap(now) != now {
		f.first.Store(sampledAgain)
	}
	return true
}

// A Policy has the causes that requests have shown in one policy. Instants are
// nanoseconds since the Finder was made, at least 1; 0 means never.
type Policy struct {
	finder *Finder
	name   string
	byPeer bool // the key takes the peer's address
	routes bool // the key may have a route
	short  bool // clients cannot use the rate, because they wait for whole seconds

	first, last [causes]atomic.Int64 // requests that showed the cause; last is negative after an Update

	forwarded, direct atomic.Uint32 // requests in a row
	routed            atomic.Bool   // a key had no route, or a known one
	unrouted          atomic.Uint32 // requests with an unknown route
	whole             atomic.Bool   // a key had no route, or one that is no mount point
	mounted           atomic.Uint32 // requests below a mount point
	written           atomic.Bool   // a handler wrote a status
	silent            atomic.Uint32 // endings without a status before that
	instants, held    atomic.Uint32 // requests that held units shorter than instant, and others
	repeated          atomic.Bool   // a key was seen twice

	mu      sync.Mutex // guards the fields below
	known   []string   // routes
	proxies *proxies   // nil: the key names none, or no request was judged
	keys    []uint64   // hashes of the first keys that were seen; nil after one was seen twice
}

// Policy returns a policy that has no findings yet. byPeer says that its key takes
// the peer's address, because it trusts no proxy; routes, that its key may have a
// route; short, that its burst comes back within a second, and clients wait for whole seconds.
func (f *Finder) Policy(name string, byPeer, routes, short bool) *Policy {
	return &Policy{finder: f, name: name, byPeer: byPeer, routes: routes, short: short}
}

// Replace is for the policy that replaces old after an Update. The present findings
// end, and do not count as new if they return.
func (p *Policy) Replace(old *Policy) {
	p.known = old.Routes() // no request has seen p yet
	now := int64(time.Since(p.finder.made))
	for c := range causes {
		last := old.last[c].Load()
		if last = max(last, -last); last > 0 && now-last < int64(lasts) {
			p.first[c].Store(old.first[c].Load())
			p.last[c].Store(-last)
		}
	}
}

// Append appends the present findings.
func (p *Policy) Append(all []algorithms.Finding) []algorithms.Finding {
	if p.short {
		p.found(shortBurst)
	}
	now := int64(time.Since(p.finder.made))
	for c := range causes {
		if last := p.last[c].Load(); last > 0 && now-last < int64(lasts) {
			all = append(all, p.finding(c, p.finder.made.Add(time.Duration(p.first[c].Load())).UTC()))
		}
	}
	return all
}

func (p *Policy) finding(c cause, first time.Time) algorithms.Finding {
	text := &texts[c]
	return algorithms.Finding{Code: text.code, Sentence: text.sentence, Remedy: text.remedy, Policy: p.name, First: first}
}

// found notes that a request has shown a cause. It logs the beginning of a finding.
func (p *Policy) found(c cause) {
	now := max(1, int64(time.Since(p.finder.made)))
	last := p.last[c].Swap(now) // of requests at once, one sees the beginning
	if last == 0 || now-max(last, -last) >= int64(lasts) {
		p.first[c].Store(now)
		f := p.finding(c, time.Time{})
		p.finder.log.Add(slog.LevelWarn, "configuration problem", "code", f.Code, "policy", f.Policy, "problem", f.Sentence, "remedy", f.Remedy)
	}
}

// ended ends a finding. Its return counts as new.
func (p *Policy) ended(c cause) {
	if p.last[c].Load() != 0 {
		p.last[c].Store(0)
		p.first[c].Store(0)
	}
}
