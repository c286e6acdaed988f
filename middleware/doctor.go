package middleware

import (
	"hash/maphash"
	"log/slog"
	"math/bits"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A Finding is a mistake in how a service is put together that shows only while
// it runs.
type Finding = algorithms.Finding

// Findings returns what the doctor has found so far. It examines the first 1000
// requests and one of 64 after these; each mistake of a policy is found once, and
// is then a warning for Options.Logger. RUNBOOK.md has all that there may be.
//
// Findings hold no data of clients. Some are conclusions from many requests: a
// key is judged after a hundred, and a mistake that only few requests show may
// not be found.
func (m *Middleware) Findings() []Finding {
	m.doctor.mu.Lock()
	defer m.doctor.mu.Unlock()
	return slices.Clone(m.doctor.findings)
}

// An ailment is what may be found.
type ailment uint8

const (
	untrustedProxy ailment = iota
	oneKey
	freshKeys
	unknownRoute
	countedTwice
	sharedCount
	costAboveBurst
	exemptProxy
	ailments
)

var ailmentTexts = [ailments]struct{ code, sentence, remedy string }{
	{
		"PS101", "Requests come with a forwarding header, and the policy's key trusts no proxy: all clients of a proxy count as one.",
		"Name your proxies in keyfunc.IPOptions.Trusted. Without proxies nothing is wrong: what clients send is not believed.",
	},
	{
		"PS102", "Different clients all have the same key, and share one limit.",
		"See what the policy's Key reads. If all are meant to share, make it a keyfunc.Const.",
	},
	{
		"PS103", "Each request has a key of its own, also those of one client: the limit never holds.",
		"Leave out of the policy's Key what changes with every request: an id, a port, the raw path.",
	},
	{
		"PS104", "No request's route is known: all share the key rt=unmatched.",
		"Mount the middleware in the chi router, or around the handlers of a ServeMux; or use keyfunc.RouteIn around that.",
	},
	{
		"PS105", "A request is charged twice: it has met a policy of this name before.",
		"Wrap each handler once, or give the inner policy a name of its own.",
	},
	{
		"PS106", "Policies of this name have different limits in two middlewares, and count together.",
		"Give one of them a name of its own, or both the same limits.",
	},
	{
		"PS107", "A request cost more than the burst, and is denied for ever.",
		"Clamp what the policy's Cost returns, or raise the burst.",
	},
	{
		"PS108", "Requests that are exempt come with a forwarding header, and ClientIP trusts no proxy: all clients of a proxy are exempt.",
		"Name your proxies in keyfunc.IPOptions.Trusted of Options.ClientIP, or leave their addresses out of Options.Exempt.",
	},
}

const (
	examinedFirst = 1000
	examinedEvery = 64

	forwardedFor = 16  // requests in a row that were forwarded
	judgedAfter  = 100 // requests, whether keys are all one, or routes unknown
	freshAfter   = 500 // requests, whether keys are always new
	manyClients  = 8   // of 64 places, so that a common key is no accident
	maxFindings  = 100
)

// A doctor looks for mistakes that only requests show.
type doctor struct {
	first     atomic.Int32  // requests that are all examined yet
	found     atomic.Uint32 // ailments of no policy, as bits
	forwarded atomic.Uint32 // exempt requests in a row

	mu       sync.Mutex // guards findings
	findings []Finding
}

// symptoms are what the doctor knows of a policy, in 2 KB.
type symptoms struct {
	found     atomic.Uint32 // ailments, as bits
	examined  atomic.Uint32
	forwarded atomic.Uint32 // requests in a row
	routed    atomic.Bool   // a key is without a route, or with one that is known
	unrouted  atomic.Uint32 // requests that were served without
	keys      recall
	clients   recall // of the same requests
}

// A recall remembers some of the hashes that it has seen.
type recall struct {
	recent [256]atomic.Uint32 // by the last bits of the hash
	kinds  atomic.Uint64      // of 64, that were seen
	again  atomic.Uint32      // how many were recent
}

func (c *recall) add(hash uint64) {
	slot, mark := &c.recent[hash%uint64(len(c.recent))], uint32(hash>>32)|1
	if slot.Swap(mark) == mark {
		c.again.Add(1)
	}
	c.kinds.Or(1 << (hash >> 8 % 64))
}

// distinct returns how many of 64 kinds of hashes there were.
func (c *recall) distinct() int { return bits.OnesCount64(c.kinds.Load()) }

// examines reports whether a request is to be examined. Chance decides, and not
// a counter, which would be a place that all requests write to.
func (m *Middleware) examines() bool {
	if m.doctor.first.Load() > 0 {
		m.doctor.first.Add(-1)
		return true
	}
	return rand.Uint32()%examinedEvery == 0
}

// examine looks at a request that has its verdict.
func (m *Middleware) examine(d *decision, r *http.Request) {
	forwarded := len(r.Header["X-Forwarded-For"]) > 0 || len(r.Header["Forwarded"]) > 0
	if d.verdict.Exempt {
		m.examineExempt(forwarded)
	}
	if d.err != nil || d.banned || len(d.checks) == 0 {
		return
	}
	var client uint64
	if keys, err := m.clientIP.Append(d.keys, r); err == nil {
		client = maphash.Bytes(keySeed, keys[len(d.keys):])
		d.keys = keys[:len(d.keys)]
	}
	for i := range d.checks {
		if a := &d.asked[i]; !a.ban && d.checks[i].Op != algorithms.TrialInstead {
			m.examinePolicy(a.policy, d.checks[i].Key, client, forwarded, d.verdict.Allowed)
		}
	}
}

func (m *Middleware) examineExempt(forwarded bool) {
	if !forwarded {
		m.doctor.forwarded.Store(0)
	} else if m.doctor.forwarded.Add(1) >= forwardedFor && m.clientIP.ByPeer() {
		m.diagnose(exemptProxy, &m.doctor.found, "")
	}
}

func (m *Middleware) examinePolicy(p *policy, key string, client uint64, forwarded, served bool) {
	s := p.symptoms
	n := s.examined.Add(1)
	s.keys.add(maphash.String(keySeed, key))
	s.clients.add(client)
	if !forwarded {
		s.forwarded.Store(0)
	} else if s.forwarded.Add(1) >= forwardedFor && p.Key.ByPeer() {
		m.find(untrustedProxy, p)
	}
	if !unrouted(key) {
		s.routed.Store(true)
	} else if served && s.unrouted.Add(1) >= judgedAfter && !s.routed.Load() {
		m.find(unknownRoute, p)
	}
	common := p.Private || p.Capacity || strings.HasPrefix(key, "const=") || strings.HasPrefix(key, "rt=")
	if n >= judgedAfter && !common && s.keys.distinct() == 1 && s.clients.distinct() >= manyClients {
		m.find(oneKey, p)
	}
	if n >= freshAfter && s.keys.again.Load() == 0 && s.clients.again.Load() >= judgedAfter {
		m.find(freshKeys, p)
	}
}

// unrouted reports whether a key has the route of what no route matches.
func unrouted(key string) bool {
	const part = "rt=unmatched"
	return strings.HasPrefix(key, part) || strings.Contains(key, "|"+part)
}

// examineNesting looks whether a handler is wrapped twice.
func (m *Middleware) examineNesting(d *decision, r *http.Request) {
	outer, ok := r.Context().Value(verdictKey{}).(*Verdict)
	if !ok {
		return
	}
	for i := range d.asked {
		p := d.asked[i].policy
		if slices.ContainsFunc(outer.Policies, func(v PolicyVerdict) bool { return v.Name == p.Name }) {
			m.find(countedTwice, p)
		}
	}
}

// find notes and logs an ailment, once for each policy.
func (m *Middleware) find(what ailment, p *policy) { m.diagnose(what, &p.symptoms.found, p.Name) }

// diagnose notes and logs an ailment that has not been found yet.
func (m *Middleware) diagnose(what ailment, found *atomic.Uint32, policy string) {
	bit := uint32(1) << what
	if found.Load()&bit != 0 || found.Or(bit)&bit != 0 {
		return
	}
	text := &ailmentTexts[what]
	f := Finding{Code: text.code, Sentence: text.sentence, Remedy: text.remedy, Policy: policy, First: time.Now().UTC()}
	if m.doctor.note(f) {
		logFinding(m.troubles.logger, f)
	}
}

func logFinding(logger *slog.Logger, f Finding) {
	var policy slog.Attr // the zero Attr is left out
	if f.Policy != "" {
		policy = slog.String("policy", f.Policy)
	}
	logger.Warn("ratelimit: "+f.Sentence, slog.String("code", f.Code), policy, slog.String("remedy", f.Remedy))
}

// note reports whether a finding is new. After an Update it may not be.
func (d *doctor) note(f Finding) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := func(g Finding) bool { return g.Code == f.Code && g.Policy == f.Policy }
	if len(d.findings) >= maxFindings || slices.ContainsFunc(d.findings, known) {
		return false
	}
	d.findings = append(d.findings, f)
	return true
}
