// The console against a model, in memory and at two instances over Redis.

package middleware_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/overrides"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// A world is the instances of a service, whose clock stands still, so that what was used stays used.
type world struct {
	instances []*ratelimit.Middleware
	tables    []ratelimit.Overrides
}

// edit changes something at the first instance, and lets the others know.
func (w *world) edit(t *rapid.T, change func(*ratelimit.Console) error) {
	if err := change(ratelimit.NewConsole(w.instances[0])); err != nil {
		t.Fatal(err)
	}
	for _, table := range w.tables {
		if r, ok := table.(*overrides.Redis); ok {
			if err := r.Refresh(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A place is where one key's units are counted.
type place struct {
	key       string
	algorithm algorithms.Algorithm
}

// A model says in integers what the worlds must do.
type model struct {
	limit     algorithms.Limit
	overrides map[[2]string]overrides.Override
	used      map[place]int64
}

// inForce returns what holds for a key.
func (m *model) inForce(key string) (algorithms.Limit, overrides.Mode) {
	for _, at := range [][2]string{{"p", key}, {"p", "*"}, {"*", "*"}} {
		if o, ok := m.overrides[at]; ok && o.Replaces() {
			return o.Limit, o.Mode
		} else if ok {
			return m.limit, o.Mode
		}
	}
	return m.limit, overrides.On
}

// request returns the status of a request, and what is left of the limit then; -1 if that was not asked.
func (m *model) request(key string) (status int, left int64) {
	limit, mode := m.inForce(key)
	at := place{key, limit.Algorithm()}
	fits := m.used[at] < limit.Burst()
	switch {
	case mode == overrides.Off:
		return 0, -1
	case mode == overrides.Banned:
		return 429, -1
	case fits:
		m.used[at]++
	case mode == overrides.On:
		status = 429
	}
	return status, max(0, limit.Burst()-m.used[at])
}

func (m *model) grant(key string, units int64) {
	limit, _ := m.inForce(key)
	at := place{key, limit.Algorithm()}
	if limit != algorithms.Nobody() {
		m.used[at] = max(0, min(m.used[at], 2*limit.Burst())-units) // of a lowered limit, twice the burst counts
	}
}

func (m *model) reset(key string) {
	for at := range m.used {
		if at.key == key {
			delete(m.used, at)
		}
	}
}

// ask makes a request at each instance in turn, so that they differ if they do not agree.
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
	ctx, s := context.Background(), ratelimit.Subject{Policy: "p", Key: key}
	switch rapid.IntRange(0, 8).Draw(t, "step") {
	default:
		m.ask(t, w, ip)
	case 1, 2:
		at := rapid.SampledFrom([][2]string{{"p", key}, {"p", "*"}, {"*", "*"}}).Draw(t, "at")
		o := overrides.Override{Mode: overrides.Mode(rapid.IntRange(0, 3).Draw(t, "mode")), Limit: rapid.SampledFrom(limits).Draw(t, "limit")}
		if o.Validate(at[0], at[1]) == nil {
			w.edit(t, func(*ratelimit.Console) error { return set(w.tables[0], at, o) })
			m.overrides[at] = o
			return
		}
		w.edit(t, func(*ratelimit.Console) error { return reset(w.tables[0], at) })
		delete(m.overrides, at)
	case 3:
		w.edit(t, func(c *ratelimit.Console) error { return c.Reset(ctx, s) })
		m.reset(key)
	case 4:
		units := rapid.Int64Range(1, 4).Draw(t, "units")
		w.edit(t, func(c *ratelimit.Console) error { return c.Grant(ctx, s, units) })
		m.grant(key, units)
	case 5:
		w.edit(t, func(c *ratelimit.Console) error { return c.Ban(ctx, s, time.Now().Add(time.Hour)) })
		m.overrides[[2]string{"p", key}] = overrides.Override{Mode: overrides.Banned}
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
	Set(ctx context.Context, policy, key string, o overrides.Override) error
	Clear(ctx context.Context, policy, key string) error
}

func set(o ratelimit.Overrides, at [2]string, value overrides.Override) error {
	return o.(table).Set(context.Background(), at[0], at[1], value)
}

func reset(o ratelimit.Overrides, at [2]string) error {
	return o.(table).Clear(context.Background(), at[0], at[1])
}

// TestModel changes limits at random between requests, in memory and at two instances over Redis.
func TestModel(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	limiter := newShared(t, s.Client(), shared.Options{Now: func() time.Time { return noon }})
	var tables []ratelimit.Overrides
	for range 2 {
		r := algorithms.Must(overrides.NewRedis(s.Client(), nil))
		t.Cleanup(func() { _ = r.Close() })
		tables = append(tables, r)
	}
	memory := newStill(t)
	for name, begin := range map[string]func(t *rapid.T) *world{
		"memory": func(*rapid.T) *world {
			for _, key := range []string{"ip=192.0.2.1", "ip=192.0.2.2"} {
				for _, l := range []algorithms.Limit{hourly, algorithms.FixedWindow(1, time.Hour)} {
					checks := []algorithms.Check{{Policy: "p", Key: key, Limit: l, Op: algorithms.Reset}}
					_ = memory.Allow(context.Background(), checks)
				}
			}
			o := overrides.NewMemory()
			return &world{tables: []ratelimit.Overrides{o}, instances: []*ratelimit.Middleware{ratelimit.Must(ratelimit.New(memory, &ratelimit.Options{Overrides: o}, byIP("p", hourly)))}}
		},
		"redis": func(t *rapid.T) *world {
			if err := s.Client().FlushAll(context.Background()).Err(); err != nil {
				t.Fatal(err)
			}
			w := &world{tables: tables}
			for _, o := range tables {
				w.instances = append(w.instances, ratelimit.Must(ratelimit.New(limiter, &ratelimit.Options{Overrides: o}, byIP("p", hourly))))
			}
			w.edit(t, func(*ratelimit.Console) error { return nil })
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w, m := begin(t), &model{limit: hourly, overrides: map[[2]string]overrides.Override{}, used: map[place]int64{}}
				for range rapid.IntRange(1, 40).Draw(t, "steps") {
					m.step(t, w)
				}
			})
		})
	}
}

// Two instances see within a second what a third does, on a server and on a Cluster, whatever they remember.
func TestConsoleOverInstances(t *testing.T) {
	t.Parallel()
	for name, clients := range map[string]func() shared.Client{
		"server":  func() shared.Client { return redistest.Start(t).Client() },
		"cluster": func() shared.Client { return redistest.StartCluster(t).Client() },
	} {
		t.Run(name, func(t *testing.T) {
			rdb := clients()
			var instances [2]*ratelimit.Middleware
			var consoles [2]*ratelimit.Console
			for i := range instances {
				table := algorithms.Must(overrides.NewRedis(rdb, nil))
				t.Cleanup(func() { _ = table.Close() })
				instances[i] = newMiddleware(t, newShared(t, rdb, shared.Options{}), &ratelimit.Options{Overrides: table}, byIP("p", algorithms.TokenBucket(1, time.Hour)))
				consoles[i] = ratelimit.NewConsole(instances[i])
			}
			ctx := context.Background()
			becomes := func(i int, want int) {
				t.Helper()
				redistest.UntilEmpty(t, fmt.Sprintf("instance %d answers %d", i, want), func() string {
					v, _ := instances[i].Check(from("192.0.2.1"))
					if v.Status == want {
						return ""
					}
					return fmt.Sprintf("got %+v", v)
				})
			}
			becomes(0, 0)
			becomes(0, 429)
			becomes(1, 429) // and both remember it
			if err := consoles[0].Reset(ctx, client); err != nil {
				t.Fatal(err)
			}
			becomes(1, 0)
			e, err := consoles[1].Explain(ctx, client)
			want := "penstock:{ip=192.0.2.1}:p:tb"
			if err != nil || !e.Denied || e.Limits[0].Stored != want || e.Limits[0].Source != algorithms.Shared {
				t.Errorf("got %+v, error %v, want it denied, and stored as %s", e, err, want)
			}
			if err := consoles[1].Grant(ctx, client, 1); err != nil {
				t.Fatal(err)
			}
			becomes(0, 0)
			if err := consoles[1].Ban(ctx, ratelimit.Subject{Policy: "p", Key: "ip=192.0.2.9"}, time.Time{}); err != nil {
				t.Fatal(err)
			}
			redistest.UntilEmpty(t, "the other instance bans", func() string {
				v, _ := instances[0].Check(from("192.0.2.9"))
				if len(v.Policies) == 1 && v.Policies[0].Banned {
					return ""
				}
				return fmt.Sprintf("got %+v", v)
			})
		})
	}
}
