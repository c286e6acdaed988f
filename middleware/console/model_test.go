// The console against a model, in memory and at two instances over Redis.

package console_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// A world has the instances of a service. Their clock stands still, so that no unit refills.
type world struct {
	instances []*ratelimit.Middleware
	tables    []table
}

// edit makes a change on the first instance, and the others read it.
func (w *world) edit(t *rapid.T, change func(*console.Console) error) {
	if err := change(console.New(w.instances[0])); err != nil {
		t.Fatal(err)
	}
	for _, table := range w.tables {
		if r, ok := table.(*overrides.Redis); ok {
			if err := r.Refresh(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A place is one state of a key.
type place struct {
	key       string
	algorithm algorithms.Algorithm
}

// A model predicts the worlds with integers.
type model struct {
	limit     algorithms.Limit
	overrides map[[2]string]ratelimit.Override
	used      map[place]int64
}

// inForce returns the limit of a key, and its override.
func (m *model) inForce(key string) (algorithms.Limit, ratelimit.Override) {
	for _, at := range [][2]string{{"p", key}, {"p", "*"}, {"*", "*"}} {
		if o, ok := m.overrides[at]; ok && o.Limit != (algorithms.Limit{}) {
			return o.Limit, o
		} else if ok {
			return m.limit, o
		}
	}
	return m.limit, ratelimit.Override{}
}

// request returns the status of a request, and the remaining units; -1 if no limit is asked.
func (m *model) request(key string) (status int, left int64) {
	limit, o := m.inForce(key)
	at := place{key, limit.Algorithm()}
	fits := m.used[at] < limit.Burst()
	switch mode := o.Mode; {
	case mode == ratelimit.ModeOff:
		return 0, -1
	case mode == ratelimit.ModeBanned && o.Until.IsZero():
		return 403, -1
	case mode == ratelimit.ModeBanned:
		return 429, -1
	case fits:
		m.used[at]++
	case mode == "" && limit == algorithms.Nobody():
		status = 403
	case mode == "":
		status = 429
	}
	return status, max(0, limit.Burst()-m.used[at])
}

func (m *model) grant(key string, units int64) {
	for at, used := range m.used {
		if at.key == key {
			m.used[at] = max(0, used-units) // a grant cuts nothing, also after the limit was lowered
		}
	}
}

func (m *model) reset(key string) {
	for at := range m.used {
		if at.key == key {
			delete(m.used, at)
		}
	}
}

// done returns the error of a change, except that a ban still holds.
func done(_ int64, err error) error {
	if errors.Is(err, console.ErrBanned) {
		return nil
	}
	return err
}

// ask makes a request on each instance in turn.
func (m *model) ask(t *rapid.T, w *world, ip string) {
	for i, instance := range w.instances {
		status, left := m.request("ip=" + ip)
		v, err := instance.Check(from(ip))
		got := int64(-1)
		if len(v.Policies) > 0 && !v.Policies[0].Banned {
			got = v.Policies[0].Decision.Remaining
		}
		if err != nil || v.Status != status || got != left {
			t.Fatalf("instance %d, %s: got %d with %d left, error %v, want %d with %d", i, ip, v.Status, got, err, status, left)
		}
	}
}

// step does one thing at random.
func (m *model) step(t *rapid.T, w *world) {
	ip := rapid.SampledFrom([]string{"192.0.2.1", "192.0.2.2"}).Draw(t, "ip")
	limits := []algorithms.Limit{{}, algorithms.Nobody(), algorithms.TokenBucket(rapid.Int64Range(1, 6).Draw(t, "n"), time.Hour), algorithms.FixedWindow(3, time.Hour)}
	key := "ip=" + ip
	s := console.Subject{Policy: "p", Key: key}
	switch rapid.IntRange(0, 8).Draw(t, "step") {
	default:
		m.ask(t, w, ip)
	case 1, 2:
		at := rapid.SampledFrom([][2]string{{"p", key}, {"p", "*"}, {"*", "*"}}).Draw(t, "at")
		modes := []ratelimit.Mode{"", ratelimit.ModeShadow, ratelimit.ModeOff, ratelimit.ModeBanned}
		o := ratelimit.Override{Mode: rapid.SampledFrom(modes).Draw(t, "mode"), Limit: rapid.SampledFrom(limits).Draw(t, "limit")}
		if overrides.NewMemory().Set(ctx, at[0], at[1], o) == nil { // it is valid
			w.edit(t, func(*console.Console) error { return w.tables[0].Set(ctx, at[0], at[1], o) })
			m.overrides[at] = o
			return
		}
		w.edit(t, func(*console.Console) error { return w.tables[0].Clear(ctx, at[0], at[1]) })
		delete(m.overrides, at)
	case 3:
		w.edit(t, func(c *console.Console) error { return done(c.Reset(ctx, s)) })
		m.reset(key)
	case 4:
		units := rapid.Int64Range(1, 4).Draw(t, "units")
		w.edit(t, func(c *console.Console) error { return done(c.Grant(ctx, s, units)) })
		m.grant(key, units)
	case 5:
		until := time.Now().Add(time.Hour)
		w.edit(t, func(c *console.Console) error { return c.Ban(ctx, s, until, "") })
		m.overrides[[2]string{"p", key}] = ratelimit.Override{Mode: ratelimit.ModeBanned, Until: until}
	case 6:
		m.limit = limits[2]
		for _, instance := range w.instances {
			if err := instance.Update(byIP("p", m.limit)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

type table interface {
	ratelimit.Overrides
	Set(ctx context.Context, policy, key string, o ratelimit.Override) error
	Clear(ctx context.Context, policy, key string) error
}

// TestModel changes limits at random between requests, in memory and at two instances over Redis.
func TestModel(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	limiter := newShared(t, s.Client(), shared.Options{Now: func() time.Time { return noon }})
	var tables []table
	for range 2 {
		r := ratelimit.Must(overrides.NewRedis(s.Client(), limiter, nil))
		t.Cleanup(func() { _ = r.Close() })
		tables = append(tables, r)
	}
	memory := newStill()
	for name, begin := range map[string]func(t *rapid.T) *world{
		"memory": func(*rapid.T) *world {
			for _, key := range []string{"ip=192.0.2.1", "ip=192.0.2.2"} {
				for _, l := range []algorithms.Limit{hourly, algorithms.FixedWindow(1, time.Hour)} {
					checks := []algorithms.Check{{Policy: "p", Key: key, Limit: l, Op: algorithms.Reset}}
					_ = memory.Allow(ctx, checks)
				}
			}
			o := overrides.NewMemory()
			return &world{tables: []table{o}, instances: []*ratelimit.Middleware{ratelimit.Must(ratelimit.New(memory, &ratelimit.Options{Overrides: o}, byIP("p", hourly)))}}
		},
		"redis": func(t *rapid.T) *world {
			if err := s.Client().FlushAll(ctx).Err(); err != nil {
				t.Fatal(err)
			}
			w := &world{tables: tables}
			for _, o := range tables {
				w.instances = append(w.instances, ratelimit.Must(ratelimit.New(limiter, &ratelimit.Options{Overrides: o}, byIP("p", hourly))))
			}
			w.edit(t, func(*console.Console) error { return nil })
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w, m := begin(t), &model{limit: hourly, overrides: map[[2]string]ratelimit.Override{}, used: map[place]int64{}}
				for range rapid.IntRange(1, 40).Draw(t, "steps") {
					m.step(t, w)
				}
			})
		})
	}
}

// An instance sees the changes of another within a second, on a server and on a Cluster, even if it remembers a denial.
func TestInstances(t *testing.T) {
	t.Parallel()
	for name, clients := range map[string]func(*testing.T) shared.Client{
		"server":  func(t *testing.T) shared.Client { return redistest.Start(t).Client() },
		"cluster": func(t *testing.T) shared.Client { return redistest.StartCluster(t).Client() },
	} {
		t.Run(name, func(t *testing.T) {
			rdb := clients(t)
			var instances [2]*ratelimit.Middleware
			var consoles [2]*console.Console
			for i := range instances {
				limiter := newShared(t, rdb, shared.Options{})
				table := ratelimit.Must(overrides.NewRedis(rdb, limiter, nil))
				t.Cleanup(func() { _ = table.Close() })
				instances[i] = newMiddleware(t, limiter, table, byUser("p", algorithms.TokenBucket(1, time.Hour)))
				consoles[i] = console.New(instances[i])
			}
			becomes := func(i int, want int) {
				t.Helper()
				redistest.UntilEmpty(t, fmt.Sprintf("instance %d answers %d", i, want), func() string {
					v, _ := instances[i].Check(asUser("42", ""))
					if v.Status == want {
						return ""
					}
					return fmt.Sprintf("got %+v", v)
				})
			}
			becomes(0, 0)
			becomes(0, 429)
			becomes(1, 429) // both remember the denial
			if _, err := consoles[0].Reset(ctx, client); err != nil {
				t.Fatal(err)
			}
			becomes(1, 0)
			e := who(t, consoles[1], client)[0]
			want := "penstock:{usr=42}:p:tb"
			if e.Verdict != console.Denied || e.Limits[0].Stored != want || e.Limits[0].Source != algorithms.Shared.String() {
				t.Errorf("got %+v, want it denied, and stored as %s", e, want)
			}
			if _, err := consoles[1].Grant(ctx, client, 1); err != nil {
				t.Fatal(err)
			}
			becomes(0, 0)
			if err := consoles[1].Ban(ctx, console.Subject{Policy: "p", ID: "9"}, time.Time{}, ""); err != nil {
				t.Fatal(err)
			}
			redistest.UntilEmpty(t, "the other instance bans", func() string {
				v, _ := instances[0].Check(asUser("9", ""))
				if len(v.Policies) == 1 && v.Policies[0].Banned {
					return ""
				}
				return fmt.Sprintf("got %+v", v)
			})
		})
	}
}
