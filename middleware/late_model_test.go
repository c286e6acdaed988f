package middleware_test

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
	"github.com/penstock-go/penstock/algorithms/overrides"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// TestLateModel takes, settles, gives back, overrides, bans, resets, grants and changes limits at random, with several
// requests in flight, and wants what a few integers say.
func TestLateModel(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		memory := newStill(t)
		rapid.Check(t, func(r *rapid.T) { newLateModel(t, r, memory).run() })
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		shared, err := algorithms.NewRedis(redistest.Start(t).Client(), &algorithms.RedisOptions{
			Now: func() time.Time { return noon }, Timeout: time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(r *rapid.T) { newLateModel(t, r, shared).run() })
	})
}

const (
	modelTokens = "tokens" // settles late
	modelLogins = "logins" // counts by outcome

	keyPrefix = "hdr.name=" // of keyfunc.Header
)

// models counts runs, each of which has keys of its own.
var models atomic.Int64

// A lateModel knows what is counted. It is always noon, so nothing comes back by itself.
type lateModel struct {
	*rapid.T
	t        *testing.T
	limiter  algorithms.Limiter
	m        *ratelimit.Middleware
	console  *ratelimit.Console
	table    *overrides.Memory
	handler  http.Handler
	prefix   string
	settled  atomic.Int64
	due      int64            // settlements
	limits   map[string]int64 // by policy
	over     map[counted]overrides.Override
	used     map[counted]int64
	inFlight []*flight
}

// counted is what has a count.
type counted struct{ policy, key string }

// A flight is a request that is being served.
type flight struct {
	key      string
	reserved map[string]int64 // by policy; none where nothing is charged
	asked    []string         // policies
	total    int64
	told     bool
	forced   int64
	do       chan func(*http.Request)
	done     chan struct{}
	status   int
}

type flightKey struct{}

func newLateModel(t *testing.T, r *rapid.T, l algorithms.Limiter) *lateModel {
	m := &lateModel{
		T: r, t: t, limiter: l, table: overrides.NewMemory(), prefix: fmt.Sprint(models.Add(1)),
		limits: map[string]int64{modelTokens: 12, modelLogins: 5},
		over:   make(map[counted]overrides.Override), used: make(map[counted]int64),
	}
	o := &ratelimit.Options{Overrides: m.table, Logger: quiet, Observer: ratelimit.ObserverFunc(func(_ context.Context, e ratelimit.Event) {
		if e.Kind == ratelimit.Settled {
			m.settled.Add(1)
		}
	})}
	m.m = newMiddleware(t, l, o, m.policies()...)
	m.console = ratelimit.NewConsole(m.m)
	m.handler = m.m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := r.Context().Value(flightKey{}).(*flight)
		for do := range f.do {
			do(r)
		}
		w.WriteHeader(f.status)
	}))
	return m
}

func (m *lateModel) policies() []ratelimit.Policy {
	limit := func(policy string) algorithms.Limit { return algorithms.FixedWindow(m.limits[policy], 24*time.Hour) }
	return []ratelimit.Policy{
		{
			Name: modelTokens, Key: keyfunc.Header("Name"), Limit: limit(modelTokens),
			Late: true, Cost: func(r *http.Request) int64 { return r.ContentLength },
		},
		{
			Name: modelLogins, Key: keyfunc.Header("Name"), Limit: limit(modelLogins),
			ChargeIf: func(status int) bool { return status == http.StatusUnauthorized },
		},
	}
}

func (m *lateModel) run() {
	m.Repeat(map[string]func(*rapid.T){
		"":         func(*rapid.T) { m.check() },
		"begin":    func(*rapid.T) { m.begin() },
		"settle":   func(*rapid.T) { m.settle() },
		"end":      func(*rapid.T) { m.end() },
		"override": func(*rapid.T) { m.override() },
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

// limit is the one in force.
func (m *lateModel) limit(c counted) int64 {
	if o, ok := m.over[c]; ok && o.Replaces() {
		return o.Limit.Requests()
	}
	return m.limits[c.policy]
}

// state is what is in use, of which no more is kept than one limit of debt.
func (m *lateModel) state(c counted) int64 { return min(m.used[c], 2*m.limit(c)) }

func (m *lateModel) begin() {
	if len(m.inFlight) == 6 {
		return
	}
	f := &flight{
		key: m.draw().key, reserved: make(map[string]int64), do: make(chan func(*http.Request)), done: make(chan struct{}),
	}
	costs := map[string]int64{modelTokens: rapid.Int64Range(1, 6).Draw(m.T, "cost"), modelLogins: 1}
	admitted, trials := true, []string(nil)
	for _, policy := range []string{modelTokens, modelLogins} {
		c := counted{policy, f.key}
		fits := m.state(c)+costs[policy] <= m.limit(c)
		switch m.over[c].Mode {
		case overrides.Off:
			continue
		case overrides.Shadow:
			if fits {
				trials = append(trials, policy)
			}
			continue
		case overrides.Banned:
			admitted = false
		}
		admitted = admitted && fits
		f.asked = append(f.asked, policy)
	}
	r := with(from("192.0.2.1"), "Name", strings.TrimPrefix(f.key, keyPrefix))
	r.ContentLength = costs[modelTokens]
	started := make(chan *http.Request)
	go func() {
		defer close(f.done)
		f.status = record(m.handler, r.WithContext(context.WithValue(r.Context(), flightKey{}, f))).Code
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
		f.reserved[policy] = costs[policy]
		m.used[c] = m.state(c) + costs[policy]
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
		go func() { answer <- ratelimit.Settle(r.Context(), modelTokens, total) }()
	}
	err, c := <-answer, counted{modelTokens, f.key}
	reserved, ok := f.reserved[modelTokens]
	if (err == nil) != ok || !ok && !errors.Is(err, ratelimit.ErrNoReservation) {
		m.t.Fatalf("Settle: got %v, reserved: %t", err, ok)
	}
	if !ok {
		return
	}
	f.told, f.total = true, max(f.total, total)
	if excess := f.total - reserved - f.forced; excess > 0 {
		m.due++
		f.forced += excess
		m.used[c] = min(m.state(c)+excess, max(m.state(c), 2*m.limit(c)))
	}
	m.await()
}

func (m *lateModel) end() {
	if len(m.inFlight) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.inFlight)-1).Draw(m.T, "request")
	f := m.inFlight[i]
	m.inFlight = slices.Delete(m.inFlight, i, i+1)
	f.status = rapid.SampledFrom([]int{200, 401}).Draw(m.T, "status")
	rests := map[string]int64{}
	if f.told {
		rests[modelTokens] = f.reserved[modelTokens] - f.total
	}
	if f.status == 200 {
		rests[modelLogins] = f.reserved[modelLogins]
	}
	for policy, rest := range rests {
		if c := (counted{policy, f.key}); rest > 0 {
			m.due++
			m.used[c] = max(0, m.state(c)-rest)
		}
	}
	close(f.do)
	<-f.done
	m.await()
}

// await waits for what is due to be settled.
func (m *lateModel) await() {
	for end := time.Now().Add(time.Minute); m.settled.Load() < m.due; time.Sleep(50 * time.Microsecond) {
		if time.Now().After(end) {
			m.t.Fatalf("%d of %d settlements were made", m.settled.Load(), m.due)
		}
	}
}

func (m *lateModel) override() {
	c, o := m.draw(), overrides.Override{Mode: overrides.Mode(rapid.IntRange(0, 3).Draw(m.T, "mode"))}
	if rapid.Bool().Draw(m.T, "clear") {
		delete(m.over, c)
		m.succeed(m.table.Clear(m.t.Context(), c.policy, c.key))
		return
	}
	if o.Mode <= overrides.Shadow {
		o.Limit = algorithms.FixedWindow(rapid.Int64Range(1, 20).Draw(m.T, "limit"), 24*time.Hour)
	}
	m.over[c] = o
	m.succeed(m.table.Set(m.t.Context(), c.policy, c.key, o))
}

func (m *lateModel) update() {
	m.limits[m.draw().policy] = rapid.Int64Range(1, 20).Draw(m.T, "limit")
	m.succeed(m.m.Update(m.policies()...))
}

func (m *lateModel) reset() {
	c := m.draw()
	m.succeed(m.console.Reset(m.t.Context(), ratelimit.Subject{Policy: c.policy, Key: c.key}))
	m.used[c] = 0
}

func (m *lateModel) grant() {
	c, units := m.draw(), rapid.Int64Range(1, 5).Draw(m.T, "units")
	m.succeed(m.console.Grant(m.t.Context(), ratelimit.Subject{Policy: c.policy, Key: c.key}, units))
	m.used[c] = max(0, m.state(c)-units)
}

func (m *lateModel) succeed(err error) {
	if err != nil {
		m.t.Fatal(err)
	}
}

// check compares all counts.
func (m *lateModel) check() {
	for _, key := range []string{"a", "b"} {
		for policy := range m.limits {
			c := counted{policy, keyPrefix + m.prefix + key}
			limit := m.limit(c)
			checks := []algorithms.Check{{Policy: policy, Key: c.key, Limit: algorithms.FixedWindow(limit, 24*time.Hour)}}
			m.succeed(m.limiter.Allow(m.t.Context(), checks))
			if got, want := checks[0].Decision.Remaining, max(0, limit-m.state(c)); got != want {
				m.t.Fatalf("%+v: %d left, want %d", c, got, want)
			}
		}
	}
}
