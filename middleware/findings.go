// Findings: misconfigurations that only requests show.
//
// A finding begins when a request shows its cause, and ends when no request has
// shown it for an hour, or at once where a request proves the opposite (a known
// route, a request that was not forwarded, a written status except in gin and echo).
// After an Update it ends unless a request shows the cause again.

package ratelimit

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A Finding is a misconfiguration that only requests show.
type Finding = algorithms.Finding

// Findings returns the present findings, without data of clients. The middleware
// examines the first 1 000 requests, then one of 64, and logs new findings. A
// finding ends an hour after its last cause.
func (m *Middleware) Findings() []Finding {
	var all []Finding
	now := int64(time.Since(m.made))
	for _, p := range m.config.Load().policies {
		for c := range causes {
			if p.symptoms.lasts(c, now) {
				all = append(all, c.finding(p, m.made.Add(time.Duration(p.symptoms.first[c].Load()))))
			}
		}
		if since, found := m.nameConflict(p); found {
			all = append(all, sharedName.finding(p, since))
		}
	}
	return all
}

// findingLasts is how long a finding lasts after the last request that showed it.
const findingLasts = time.Hour

// A cause is the misconfiguration that a finding reports.
type cause uint8

const (
	untrustedProxy cause = iota
	unknownRoute
	chargedTwice
	costAboveBurst
	unknownTier
	noStatus
	hiddenRoute
	causes
	sharedName // not shown by requests
)

// setPattern is the remedy in routers whose routes keyfunc.Route does not know.
const setPattern = "In another router, set the request's pattern before the middleware. " +
	"gorilla: r.Pattern, _ = mux.CurrentRoute(r).GetPathTemplate(). echo: c.Request().Pattern = c.Path(). " +
	"gin: c.Request.Pattern = c.FullPath(). httprouter: r.Pattern = path, where you register the path."

var causeTexts = [...]struct{ code, sentence, remedy string }{
	untrustedProxy: {
		"PS101", "Requests carry a forwarding header, and the policy's key trusts no proxy: all clients behind a proxy count as one.",
		"Name your proxies in Options.ClientIP. Without proxies, ignore this finding: the header is not trusted.",
	},
	unknownRoute: {
		"PS104", "The route of no request is known: all requests share the key rt=unmatched.",
		"Mount the middleware in the chi router, or around the handlers of a ServeMux; or use keyfunc.RouteIn around the ServeMux. " + setPattern,
	},
	chargedTwice: {
		"PS105", "A request is charged twice: it has met a policy of this name before.",
		"Wrap each handler once, or give the inner policy another name.",
	},
	costAboveBurst: {
		"PS107", "A request cost more than the burst, and is denied for ever.",
		"Clamp the result of the policy's Cost, or raise the burst.",
	},
	unknownTier: {
		"PS109", "An identity has a tier that the policy's Tiers lacks: Limit holds for it.",
		"Add the tier to Policy.Tiers, or correct the tier that the lookup returns.",
	},
	noStatus: {
		"PS110", "ChargeIf does not see the statuses of responses: requests without one counted as 200.",
		"The router answers past the middleware. gin: call w.WriteHeader(c.Writer.Status()) after c.Next(). " +
			"echo: call c.Error(err) inside the middleware. Elsewhere use Cost and Settle. See Policy.ChargeIf.",
	},
	hiddenRoute: {
		"PS111", "The route of every request is the prefix of a subtree: all routes of a router behind it share one key.",
		setPattern + " If no router is behind the prefix, ignore this finding.",
	},
	sharedName: {
		"PS106", "Policies of this name have different limits in several Middlewares with one limiter: equal algorithms count together, others apart.",
		"Give one of them another name, or all of them the same limits.",
	},
}

func (c cause) finding(p *policy, first time.Time) Finding {
	text := &causeTexts[c]
	return Finding{Code: text.code, Sentence: text.sentence, Remedy: text.remedy, Policy: p.Name, First: first.UTC()}
}

// symptoms are the causes that requests have shown in a policy. Instants are
// nanoseconds since the Middleware was made, at least 1; 0 means never.
type symptoms struct {
	first, last [causes]atomic.Int64 // requests that showed the cause; last is negative after an Update

	forwarded, direct atomic.Uint32 // examined requests in a row
	routed            atomic.Bool   // a key had no route, or a known one
	unrouted          atomic.Uint32 // served requests with an unknown route
	whole             atomic.Bool   // a key had no route, or one that is no mount point
	mounted           atomic.Uint32 // requests below a mount point
	written           atomic.Bool   // a handler wrote a status
	silent            atomic.Uint32 // outcomes without a status before that
}

// lasts reports whether a finding is present.
func (s *symptoms) lasts(c cause, now int64) bool {
	last := s.last[c].Load()
	return last > 0 && now-last < int64(findingLasts)
}

// after returns the symptoms of a policy after an Update. The present findings
// end, and do not count as new if they return.
func (s *symptoms) after(now int64) *symptoms {
	next := new(symptoms)
	for c := range causes {
		last := s.last[c].Load()
		if last = max(last, -last); last > 0 && now-last < int64(findingLasts) {
			next.first[c].Store(s.first[c].Load())
			next.last[c].Store(-last)
		}
	}
	return next
}

// find notes that a request has shown a cause. It logs the beginning of a finding.
func (m *Middleware) find(c cause, p *policy) {
	now := max(1, int64(time.Since(m.made)))
	s := p.symptoms
	last := s.last[c].Swap(now) // of requests at once, one sees the beginning
	if last == 0 || now-max(last, -last) >= int64(findingLasts) {
		s.first[c].Store(now)
		m.logFinding(c.finding(p, time.Time{}))
	}
}

// end ends a finding. Its return counts as new.
func (s *symptoms) end(c cause) {
	if s.last[c].Load() != 0 {
		s.last[c].Store(0)
		s.first[c].Store(0)
	}
}

func (m *Middleware) logFinding(f Finding) {
	m.troubles.logger.Warn(logPrefix+"configuration problem", "code", f.Code, "policy", f.Policy, "problem", f.Sentence, "remedy", f.Remedy)
}
