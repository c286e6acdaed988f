// A random walk over the three texts of a decision: the Go step, and in Lua the general
// case and lone.lua. One clock of the test drives them, so instants, clocks that step
// back and the lives of keys are exact.

package batch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/lua"
)

// Lone takes, tallies and calls of counted limits give the same figures in all texts, and
// no key expires before its limit is full. PENSTOCK_SEED=n repeats a walk.
func TestWalk(t *testing.T) { testWalk(t, 60) }

// The same for longer.
func TestLongWalk(t *testing.T) {
	longtest.Skip(t)
	testWalk(t, 3_000)
}

func testWalk(t *testing.T, walks int) {
	t.Parallel()
	client := redistest.Start(t).Client()
	digest, err := client.ScriptLoad(t.Context(), walkScript(t)).Result()
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	if text := os.Getenv("PENSTOCK_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Log("PENSTOCK_SEED is", seed)
	var lone, general int
	for n := range uint64(walks) {
		client.FlushDB(t.Context())
		r := rand.New(rand.NewPCG(seed, n))
		w := &walk{T: t, Rand: r, client: client, digest: digest, name: fmt.Sprintf("walk %d of PENSTOCK_SEED=%d", n, seed)}
		w.begin()
		for range 60 {
			w.step()
		}
		lone, general = lone+w.scripts[false], general+w.scripts[true]
	}
	if lone < 20*walks || general < 50*walks {
		t.Errorf("%d scripts went through lone.lua and %d through the general case, want many of both", lone, general)
	}
}

// walkScript returns the script with the clock of the test, and with TTLs that it notes for the
// test and does not set: the time of Redis is not the time of the test.
func walkScript(t *testing.T) string {
	source := lua.Source()
	for _, change := range [][2]string{
		{"local time = call('TIME') -- once: before Redis 7.2 it moves on within a script\ntime = time[1] * 1000000 + time[2]", "local time = tonumber(call('GET', 'clock'))"},
		{"call('PSETEX', key, format('%d', left), state)", "call('SET', key, state) call('SET', 'ttl:' .. key, format('%d', left))"},
		{"call('SET', key, state, 'PX', format('%d', left), 'NX')", "(call('SET', key, state, 'NX') and call('SET', 'ttl:' .. key, format('%d', left)))"},
		{"call('PSETEX', key, ms, state)", "call('SET', key, state) call('SET', 'ttl:' .. key, ms)"},
		{"call('SET', key, state, 'PX', ms, 'NX')", "(call('SET', key, state, 'NX') and call('SET', 'ttl:' .. key, ms))"},
	} {
		if strings.Count(source, change[0]) != 1 {
			t.Fatalf("the script no longer has %q once: the walk has to replace it", change[0])
		}
		source = strings.Replace(source, change[0], change[1], 1)
	}
	return source
}

// A walk moves a clock, and takes units of the same few keys again and again.
type walk struct {
	*testing.T
	*rand.Rand
	client  *redis.Client
	digest  string
	name    string
	now     int64 // µs
	limits  []step.Limit
	keys    []int                 // each has the limit of this place
	models  map[string]*walkedKey // by stored key: the keys of each text are its own
	scripts map[bool]int          // how many were sent, by whether the general case decides
}

// A walkedKey is a key as the Go step knows it.
type walkedKey struct {
	limit  *step.Limit
	state  step.State
	expiry int64 // µs; 0: the key does not exist
}

// begin draws the limits, the keys and the first instant.
func (w *walk) begin() {
	rows := []*step.Row{step.TokenBucket, step.LeakyBucket, step.FixedWindow, step.SlidingWindowCounter}
	if w.IntN(3) > 0 {
		rows = rows[:2] // lone.lua decides buckets
	}
	for count := 1 + w.IntN(3); len(w.limits) < count; {
		row := rows[w.IntN(len(rows))]
		l := step.NewLimit(row, w.size(row.MaxRequests), w.size(step.MaxWindow))
		if l.Bucket() && w.IntN(2) == 0 {
			l.Burst = w.size(row.MaxRequests)
			l = l.Reduced()
		}
		if (!l.Bucket() || l.Exact()) && !slices.Contains(w.limits, l) {
			w.limits = append(w.limits, l)
		}
	}
	for range 1 + w.IntN(8) {
		w.keys = append(w.keys, w.IntN(len(w.limits)))
	}
	w.now = 1_000_000_000_000_000 + w.Int64N(800_000_000_000_000)
	if w.IntN(6) == 0 {
		w.now = 1 + w.Int64N(1_000_000_000_000_000) // before 2001, states have the long form
	}
	w.models, w.scripts = make(map[string]*walkedKey), make(map[bool]int)
}

// size draws a number up to most, of any magnitude.
func (w *walk) size(most int64) int64 {
	if w.IntN(4) == 0 {
		return 1 + w.Int64N(10)
	}
	return 1 + int64(math.Pow(float64(most), w.Float64()))%most
}

// step moves the clock, and lets each text decide the same calls.
func (w *walk) step() {
	l := &w.limits[w.IntN(len(w.limits))]
	switch w.IntN(8) {
	case 0: // the same instant
	case 1:
		w.now++
	case 2:
		w.now += w.Int64N(1_000_000)
	case 3:
		w.now += w.Int64N(2*l.W/l.R + 2)
	case 4:
		w.now += l.W / l.R
	case 5:
		w.now += w.Int64N(min(l.Window, 1<<40) + 1)
	case 6:
		w.now = max(1, w.now-w.Int64N(250_000))
	default:
		w.now += w.Int64N(100)
	}
	if err := w.client.Set(w.Context(), "clock", w.now, 0).Err(); err != nil {
		w.Fatal(err)
	}
	calls := w.calls()
	w.decide(calls, true)
	w.decide(calls, false)
}

// calls draws calls whose keys are distinct, except that a lone take may come several times.
func (w *walk) calls() (calls [][]algorithms.Check) {
	keys := w.Perm(len(w.keys))
	for keys = keys[:1+w.IntN(len(keys))]; len(keys) > 0; {
		size, times := 1, 1
		switch w.IntN(6) {
		case 0, 1:
			size = 1 + w.IntN(min(4, len(keys)))
		case 2:
			times = 1 + w.IntN(4)
		}
		var call []algorithms.Check
		for _, key := range keys[:size] {
			l := w.limits[w.keys[key]]
			cost := []int64{0, 1, 1, 1, 2, l.Burst, l.Burst + 1, w.Int64N(min(l.Burst, 5000) + 1)}[w.IntN(8)]
			call = append(call, algorithms.Check{
				Policy: "walk", Key: fmt.Sprint("usr=", key), Limit: algorithms.LimitOf(l), Cost: min(cost, step.MaxUnits),
			})
		}
		keys = keys[size:]
		if size > 1 {
			times = 1
		}
		for range times {
			calls = append(calls, call)
		}
	}
	return calls
}

// decide lets one text decide calls in one script, and compares each answer with the Go step.
func (w *walk) decide(calls [][]algorithms.Check, general bool) {
	w.Helper()
	var s script
	for _, checks := range calls {
		s.groups = append(s.groups, groupOf(w.T, fmt.Sprint("general-", general), checks...))
	}
	s.pack(time.Now().UnixMicro())
	if s.general && !general {
		return // lone.lua decides only buckets
	}
	args := []any{"evalsha", w.digest, len(s.keys)}
	for i := range s.keys {
		w.expire(s.keys[i].String())
		args = append(args, &s.keys[i])
	}
	args = append(args, s.packed, s.takes)
	if general {
		args = append(args, "0")
	}
	reply, err := w.client.Do(w.Context(), args...).Result()
	if err == nil {
		err = s.read(reply)
	}
	if err != nil {
		w.Fatalf("%s: %v", w.name, err)
	}
	w.scripts[general]++
	for _, g := range s.groups {
		w.compare(g)
	}
	for i := range s.keys {
		w.live(s.keys[i].String())
	}
}

// expire removes a key whose life has ended.
func (w *walk) expire(key string) {
	m := w.models[key]
	if m == nil {
		m = new(walkedKey)
		w.models[key] = m
	}
	if m.expiry == 0 || w.now < m.expiry {
		return
	}
	if left := m.limit.At(m.state, w.now); !left.Empty() {
		w.Errorf("%s: at %d %s has expired with %+v, of %+v under %+v", w.name, w.now, key, left, m.state, *m.limit)
	}
	w.client.Del(w.Context(), key)
	*m = walkedKey{}
}

// compare lets the Go step decide a group, and compares the answers. A call is charged if none of
// its takes is denied.
func (w *walk) compare(g *Group) {
	w.Helper()
	denied := false
	for _, it := range g.Items {
		m := w.models[it.Stored]
		m.limit = &it.Limit
		denied = denied || !w.take(m, it.Cost).Allowed
	}
	for _, it := range g.Items {
		m, cost := w.models[it.Stored], it.Cost
		want := w.take(m, cost)
		if denied && want.Allowed {
			want = w.take(m, 0)
			want.Allowed = true
		}
		got := it.Answer
		same := got.N == want.State.N && got.F == want.State.F && (got.T == want.State.T || want.State.Empty())
		if got.Allowed != want.Allowed || got.Charged != want.Charged || !same {
			w.Fatalf("%s: at %d %d units of %s with %+v under %+v: got %+v, want %+v", w.name, w.now, cost, it.Stored, m.state, it.Limit, got, want)
		}
		if want.Dirty {
			m.state = want.State
		}
	}
}

// take decides a take of a key by the Go step.
func (w *walk) take(m *walkedKey, cost int64) (t step.Lone) {
	t.Take(m.state, w.now, cost, m.limit)
	return t
}

// live notes the TTL that the script has chosen for a key. It is long enough, and no longer
// than two spans of ten seconds.
func (w *walk) live(key string) {
	const most = 3_153_600_000_000 // ms: the longest TTL
	m := w.models[key]
	ttl, err := w.client.GetDel(w.Context(), "ttl:"+key).Int64()
	if err != nil {
		return // the script has kept the TTL
	}
	m.expiry = w.now + ttl*1000
	full := m.limit.FullAt(m.state)
	if m.expiry < full && ttl < most || full > 0 && m.expiry-full > 20_200_000 {
		w.Errorf("%s: at %d %s lives until %d, and is full at %d: %+v under %+v", w.name, w.now, key, m.expiry, full, m.state, *m.limit)
	}
}
