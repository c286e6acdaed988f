// Late costs, overrides, bans and changed limits against a model: its state, and its run.

package tests

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// TestLateModel takes, settles, gives back, overrides, bans, resets, grants and changes limits and algorithms at
// random, with several requests in flight that end in any way, and compares with a model of a few integers.
func TestLateModel(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		memory := newStill(t)
		rapid.Check(t, func(r *rapid.T) { newLateModel(t, r, memory).run() })
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		limiter := newShared(t, redistest.Start(t).Client(), shared.Options{Now: func() time.Time { return noon }})
		rapid.Check(t, func(r *rapid.T) { newLateModel(t, r, patient{limiter}).run() })
	})
}

// modelLimits are those of the model, by algorithm. All but leaky buckets can settle late.
var modelLimits = []func(n int64) algorithms.Limit{
	func(n int64) algorithms.Limit { return algorithms.FixedWindow(n, 24*time.Hour) },
	func(n int64) algorithms.Limit { return algorithms.SlidingWindowCounter(n, 24*time.Hour) },
	func(n int64) algorithms.Limit { return algorithms.SlidingWindowLog(n, 24*time.Hour) },
	func(n int64) algorithms.Limit { return algorithms.TokenBucket(n, 24*time.Hour) },
}

const (
	modelTokens = "tokens" // settles late
	modelLogins = "logins" // counts by outcome

	keyPrefix = "hdr.name=" // of keyfunc.Header
)

// models counts runs. Each run has keys of its own.
var models atomic.Int64

// A lateModel knows what is counted. It is always noon, so nothing comes back by itself.
type lateModel struct {
	*rapid.T
	t        *testing.T
	limiter  algorithms.Limiter
	m        *ratelimit.Middleware
	console  *console.Console
	table    *overrides.Memory
	handler  http.Handler
	prefix   string
	settled  atomic.Int64
	due      int64                       // settlements
	limits   map[string]algorithms.Limit // by policy
	over     map[counted]ratelimit.Override
	used     map[stored]int64 // as it was written
	inFlight []*flight
}

// counted is a counted client.
type counted struct{ policy, key string }

// stored is the place of a count.
type stored struct {
	counted
	algorithm algorithms.Algorithm
}

// A flight is a request that is being served.
type flight struct {
	key      string
	reserved map[string]reservation // by policy; none where nothing is charged
	asked    []string               // policies
	total    int64
	told     bool
	forced   int64
	hangUp   context.CancelFunc
	do       chan func(*http.Request)
	done     chan struct{}
	ends     int // with this status
}

// A reservation is the units of a take, and its limit.
type reservation struct {
	units int64
	limit algorithms.Limit
}

// Ends of flights without a written status.
const (
	panics  = 500
	hangsUp = 499
)

type flightKey struct{}

func newLateModel(t *testing.T, r *rapid.T, l algorithms.Limiter) *lateModel {
	m := &lateModel{
		T: r, t: t, limiter: l, table: overrides.NewMemory(), prefix: fmt.Sprint(models.Add(1)),
		limits: make(map[string]algorithms.Limit),
		over:   make(map[counted]ratelimit.Override), used: make(map[stored]int64),
	}
	m.limits[modelTokens] = rapid.SampledFrom(modelLimits).Draw(r, modelTokens)(12)
	m.limits[modelLogins] = rapid.SampledFrom(modelLimits).Draw(r, modelLogins)(5)
	o := &ratelimit.Options{Overrides: m.table, Logger: quiet, Observers: []ratelimit.Observer{ratelimit.ObserverFunc(func(_ context.Context, e ratelimit.Event) {
		if e.Kind == ratelimit.Settled {
			m.settled.Add(1)
		}
	})}}
	m.m = newMiddleware(t, l, o, m.policies()...)
	m.console = console.New(m.m)
	m.handler = m.m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := r.Context().Value(flightKey{}).(*flight)
		for do := range f.do {
			do(r)
		}
		switch f.ends {
		case panics:
			panic(http.ErrAbortHandler)
		case hangsUp:
			f.hangUp()
		default:
			w.WriteHeader(f.ends)
		}
	}))
	return m
}

func (m *lateModel) policies() []ratelimit.Policy {
	return []ratelimit.Policy{
		{
			Name: modelTokens, Key: keyfunc.Header("Name"), Limit: m.limits[modelTokens],
			Cost: func(r *http.Request) int64 { return r.ContentLength },
		},
		{
			Name: modelLogins, Key: keyfunc.Header("Name"), Limit: m.limits[modelLogins],
			ChargeIf: func(status int) bool { return status >= 400 },
		},
	}
}

func (m *lateModel) run() {
	defer func() { // rapid may give up a run between two steps
		for _, f := range m.inFlight {
			f.ends = http.StatusOK
			close(f.do)
			<-f.done
		}
	}()
	m.Repeat(map[string]func(*rapid.T){
		"":         func(*rapid.T) { m.check() },
		"begin":    func(*rapid.T) { m.begin() },
		"settle":   func(*rapid.T) { m.settle() },
		"end":      func(*rapid.T) { m.end() },
		"override": func(*rapid.T) { m.override() },
		"ban":      func(*rapid.T) { m.ban() },
		"unban":    func(*rapid.T) { m.unban() },
		"update":   func(*rapid.T) { m.update() },
		"reset":    func(*rapid.T) { m.reset() },
		"grant":    func(*rapid.T) { m.grant() },
	})
	for len(m.inFlight) > 0 {
		m.end()
	}
	m.check()
}

func (m *lateModel) draw() counted {
	return counted{
		rapid.SampledFrom([]string{modelTokens, modelLogins}).Draw(m.T, "policy"),
		keyPrefix + m.prefix + rapid.SampledFrom([]string{"a", "b"}).Draw(m.T, "key"),
	}
}

// drawLimit draws a limit instead of another, often of the same algorithm: it has the same count then.
func (m *lateModel) drawLimit(now algorithms.Limit) algorithms.Limit {
	limit, same := rapid.SampledFrom(modelLimits).Draw(m.T, "algorithm"), rapid.Bool().Draw(m.T, "same algorithm")
	for _, other := range modelLimits {
		if same && other(1).Algorithm() == now.Algorithm() {
			limit = other
		}
	}
	return limit(rapid.Int64Range(1, 20).Draw(m.T, "limit"))
}

// limit is the limit in force.
func (m *lateModel) limit(c counted) algorithms.Limit {
	if o, ok := m.over[c]; ok && o.Limit != (algorithms.Limit{}) {
		return o.Limit
	}
	return m.limits[c.policy]
}

func at(c counted, l algorithms.Limit) stored { return stored{c, l.Algorithm()} }

// state is a count under a limit: all entries of a log, and otherwise at most one limit of debt.
func (m *lateModel) state(c counted, l algorithms.Limit) int64 {
	if used := m.used[at(c, l)]; l.Algorithm() == slidingLog || used < 2*l.Requests() {
		return used
	}
	return 2 * l.Requests()
}

func (m *lateModel) begin() {
	if len(m.inFlight) == 6 {
		return
	}
	f := &flight{
		key: m.draw().key, reserved: make(map[string]reservation), do: make(chan func(*http.Request)), done: make(chan struct{}),
	}
	costs := map[string]int64{modelTokens: rapid.Int64Range(1, 6).Draw(m.T, "cost"), modelLogins: 1}
	admitted, trials := true, []string(nil)
	for _, policy := range []string{modelTokens, modelLogins} {
		c := counted{policy, f.key}
		fits := m.state(c, m.limit(c))+costs[policy] <= m.limit(c).Requests()
		switch m.over[c].Mode {
		case ratelimit.ModeOff:
			continue
		case ratelimit.ModeShadow:
			if fits {
				trials = append(trials, policy)
			}
			continue
		case ratelimit.ModeBanned:
			admitted = false
		}
		admitted = admitted && fits
		f.asked = append(f.asked, policy)
	}
	r := with(from("192.0.2.1"), "Name", strings.TrimPrefix(f.key, keyPrefix))
	r.ContentLength = costs[modelTokens]
	started := make(chan *http.Request)
	var ctx context.Context
	ctx, f.hangUp = context.WithCancel(context.WithValue(r.Context(), flightKey{}, f))
	go func() {
		defer close(f.done)
		defer f.hangUp()
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				panic(p)
			}
		}()
		record(m.handler, r.WithContext(ctx))
	}()
	got := false
	select {
	case f.do <- func(r *http.Request) { go func() { started <- r }() }:
		<-started
		got = true
	case <-f.done:
	}
	if got != admitted {
		m.t.Fatalf("%+v: admitted %t, want %t", f, got, admitted)
	}
	if !admitted {
		return
	}
	for _, policy := range slices.Concat(f.asked, trials) {
		c := counted{policy, f.key}
		l := m.limit(c)
		f.reserved[policy] = reservation{units: costs[policy], limit: l}
		m.used[at(c, l)] = m.state(c, l) + costs[policy]
	}
	m.inFlight = append(m.inFlight, f)
}

func (m *lateModel) settle() {
	if len(m.inFlight) == 0 {
		return
	}
	f, total := rapid.SampledFrom(m.inFlight).Draw(m.T, "request"), rapid.Int64Range(0, 20).Draw(m.T, "total")
	answer := make(chan error)
	f.do <- func(r *http.Request) {
		go func() { answer <- ratelimit.Settle(r.Context(), total, modelTokens) }()
	}
	err, c := <-answer, counted{modelTokens, f.key}
	reserved, ok := f.reserved[modelTokens]
	if (err == nil) != ok || !ok && !errors.Is(err, ratelimit.ErrNotSettled) {
		m.t.Fatalf("Settle: got %v, reserved: %t", err, ok)
	}
	if !ok {
		return
	}
	f.told, f.total = true, max(f.total, total)
	if excess := f.total - reserved.units - f.forced; excess > 0 {
		m.due++
		f.forced += excess
		l := m.limit(c)
		used := m.state(c, l)
		m.used[at(c, l)] = min(used+excess, max(used, 2*l.Requests()))
	}
	m.await()
}

func (m *lateModel) end() {
	if len(m.inFlight) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.inFlight)-1).Draw(m.T, "request")
	f := m.inFlight[i]
	f.ends = rapid.SampledFrom([]int{200, 401, panics, hangsUp}).Draw(m.T, "status")
	m.inFlight = slices.Delete(m.inFlight, i, i+1)
	rests := map[string]int64{}
	if f.told {
		rests[modelTokens] = f.reserved[modelTokens].units - f.total
	}
	if f.ends == 200 {
		rests[modelLogins] = f.reserved[modelLogins].units
	}
	for policy, rest := range rests {
		if rest > 0 {
			m.due++
			defer m.giveBack(counted{policy, f.key}, f.reserved[policy], rest)
		}
	}
	close(f.do)
	<-f.done
	m.await()
}

// await waits until all settlements are made.
func (m *lateModel) await() {
	redistest.UntilEmpty(m.t, "all settlements are made", func() string {
		if n := m.settled.Load(); n < m.due {
			return fmt.Sprintf("%d of %d are", n, m.due)
		}
		return ""
	})
}

func (m *lateModel) succeed(err error) {
	if err != nil {
		m.t.Fatal(err)
	}
}

// check compares all counts, under the limit in force and as written.
func (m *lateModel) check() {
	var checks []algorithms.Check
	var want []int64
	for _, key := range []string{"a", "b"} {
		for policy := range m.limits {
			c := counted{policy, keyPrefix + m.prefix + key}
			limits := []algorithms.Limit{m.limit(c)}
			for _, limit := range modelLimits {
				limits = append(limits, limit(100))
			}
			for _, l := range limits {
				checks = append(checks, algorithms.Check{Policy: policy, Key: c.key, Limit: l})
				want = append(want, max(0, l.Requests()-m.state(c, l)))
			}
		}
	}
	m.succeed(m.limiter.Allow(m.t.Context(), checks))
	for i, c := range checks {
		if got := c.Decision.Remaining; got != want[i] {
			m.Fatalf("%s %s, %v: %d left, want %d", c.Policy, c.Key, c.Limit, got, want[i])
		}
	}
}
