package middleware

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A Status is a page that shows an operator what the limits do on this instance:
// the policies and what they made of the requests of the last minute, who is
// denied most, how long decisions take, how Redis is, and what the doctor has
// found (see [Middleware.Findings]).
//
// It is the Observer of middlewares, since it counts what they do; what else it
// shows it asks those that Watch was given, when somebody looks. It starts no
// goroutine. Per policy it takes 1 KB, and 45 KB besides.
//
//	status := ratelimit.NewStatus()
//	limited := ratelimit.Must(ratelimit.New(limiter, &ratelimit.Options{Observer: status}, policies...))
//	status.Watch(limited)
//	ratelimit.Must(status, status.WatchLimiter("redis", limiter))
//	r.With(operatorsOnly).Method("GET", "/status", status)
//
// With other observers, e.g. metrics, it is told by [Observers].
//
// Mount it behind your authentication: it tells what your limits are and, as far
// as the policies' ShowKeys do, who your clients are.
//
// A Status is safe for concurrent use.
type Status struct {
	made      time.Time
	decisions *minute                            // by source and duration, and requests
	outcomes  atomic.Pointer[map[string]*minute] // by policy; copied when one is added

	mu          sync.Mutex // guards what follows, and additions to outcomes
	middlewares []*Middleware
	limiters    []namedLimiter
}

var (
	_ Observer     = (*Status)(nil)
	_ http.Handler = (*Status)(nil)
)

type namedLimiter struct {
	name    string
	limiter statsLimiter
}

const (
	allSources = int(algorithms.Local) + 1

	// The kinds of what s.decisions counts are durations by source, and
	countDecided = allSources * durationBuckets // requests
	countRefused = countDecided + 1             // those of them that were not allowed
)

// NewStatus returns a page that shows nothing yet.
func NewStatus() *Status {
	s := &Status{made: time.Now(), decisions: newMinute(countRefused+1, 0)}
	s.outcomes.Store(&map[string]*minute{})
	return s
}

// Watch adds middlewares to the page.
func (s *Status) Watch(middlewares ...*Middleware) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range middlewares {
		if !slices.Contains(s.middlewares, m) {
			s.middlewares = append(s.middlewares, m)
		}
	}
}

// WatchLimiter adds a limiter to the page, under a name. The error says that it
// has no Stats; all limiters of this module have.
func (s *Status) WatchLimiter(name string, limiter algorithms.Limiter) error {
	counted, ok := limiter.(statsLimiter)
	if !ok {
		return fmt.Errorf("middleware: limiter %q is a %T, which has no Stats", name, limiter)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limiters = append(s.limiters, namedLimiter{name, counted})
	return nil
}

// watched returns what the page shows.
func (s *Status) watched() ([]*Middleware, []namedLimiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.middlewares), slices.Clone(s.limiters)
}

// Observe implements [Observer]. It takes no lock that requests share, and
// allocates nothing.
func (s *Status) Observe(_ context.Context, e Event) {
	if e.Kind != Decided {
		return
	}
	v, now := &e.Verdict, time.Since(s.made)
	s.decisions.add(countDecided, now)
	if !v.Allowed {
		s.decisions.add(countRefused, now)
	}
	if e.Policy != "" {
		s.of(e.Policy, now).add(int(OutcomeKeyError), now)
	}
	if len(v.Policies) == 0 {
		return // nobody was asked
	}
	s.decisions.add(int(min(v.Source(), algorithms.Local))*durationBuckets+bucketOf(e.Elapsed), now)
	for i := range v.Policies {
		s.of(v.Policies[i].Name, now).add(int(v.Outcome(i)), now)
	}
}

// of returns the outcomes of a policy.
func (s *Status) of(policy string, now time.Duration) *minute {
	if m, ok := (*s.outcomes.Load())[policy]; ok {
		return m
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := (*s.outcomes.Load())[policy]; ok {
		return m
	}
	all := maps.Clone(*s.outcomes.Load())
	all[policy] = newMinute(Outcomes, now)
	s.outcomes.Store(&all)
	return all[policy]
}
