// Tests of overrides in Redis: instances, outages, bad entries and bounds.

package overrides_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/overrides"
	"github.com/penstock-go/penstock/internal/redistest"
)

func TestNewRedisMistakes(t *testing.T) {
	_, err := overrides.NewRedis(nil, &overrides.RedisOptions{Prefix: "a {b}"})
	for _, words := range []string{"client is nil", `prefix "a {b}"`} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got error %v, want it to say %q", err, words)
		}
	}
}

// Two instances see each other's edits, on one server and on a Cluster.
func TestRedisInstances(t *testing.T) {
	t.Parallel()
	for name, clients := range map[string]func(t *testing.T) [2]overrides.Client{
		"server": func(t *testing.T) [2]overrides.Client {
			s := redistest.Start(t)
			return [2]overrides.Client{s.Client(), s.Client()}
		},
		"cluster": func(t *testing.T) [2]overrides.Client {
			c := redistest.StartCluster(t)
			return [2]overrides.Client{c.Client(), c.Client()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clients(t)
			a, b := newRedis(t, c[0], nil), newRedis(t, c[1], nil)
			ban := overrides.Override{Mode: overrides.Banned, Until: time.Now().Add(time.Hour)}
			set(t, a, "p", "usr=1", ban)
			wantFound(t, a, "p", "usr=1", ban)
			set(t, b, "q", overrides.Everyone, overrides.Override{Limit: hourly})
			set(t, a, overrides.All, overrides.Everyone, overrides.Override{Mode: overrides.Off})
			eventually(t, "seen by b", func() bool {
				_, p := b.Find("p", "usr=1")
				o, _ := b.Find("r", "usr=1")
				return p && o.Mode == overrides.Off
			})
			eventually(t, "seen by a", func() bool { o, _ := a.Find("q", "usr=7"); return o.Limit == hourly })
			if all, err := b.List(ctx, "p"); err != nil || len(all) != 1 || !same(all["usr=1"], ban) {
				t.Errorf("got %v, error %v, want the ban", all, err)
			}
			late := newRedis(t, c[0], nil)
			if err := late.Refresh(ctx); err != nil {
				t.Error(err)
			}
			wantFound(t, late, "p", "usr=1", ban)
			for _, place := range [][2]string{{"p", "usr=1"}, {"q", "*"}, {"*", "*"}, {"p", "usr=1"}} {
				if err := b.Clear(ctx, place[0], place[1]); err != nil {
					t.Error(err)
				}
			}
			wantNone(t, b, "p", "usr=1")
			eventually(t, "cleared at a", func() bool { return a.Stats().Overrides == 0 })
		})
	}
}

// While Redis is away what was read last stays in force, and is looked for again when it is back.
func TestRedisKilled(t *testing.T) {
	t.Parallel()
	s, logged := redistest.Start(t), new(log)
	a := newRedis(t, s.Client(), &overrides.RedisOptions{Logger: slog.New(slog.NewTextHandler(logged, nil))})
	set(t, a, "p", "usr=1", overrides.Override{Limit: hourly})
	s.Kill()
	eventually(t, "failing", func() bool { return a.Stats().Failures >= 2 })
	wantFound(t, a, "p", "usr=1", overrides.Override{Limit: hourly})
	if err := a.Set(ctx, "p", "usr=2", overrides.Override{}); err == nil || errors.Is(err, overrides.ErrInvalid) {
		t.Errorf("got error %v, want the client's", err)
	}
	if err := a.Clear(ctx, "p", "usr=1"); err == nil {
		t.Error("got no error of Clear")
	}
	if _, err := a.List(ctx, "p"); err == nil {
		t.Error("got no error of List")
	}
	wantFound(t, a, "p", "usr=1", overrides.Override{Limit: hourly})
	s.Restart() // empty
	eventually(t, "following Redis", func() bool { _, ok := a.Find("p", "usr=1"); return !ok })
	if logged.count("cannot be read") != 1 || logged.count("can be read again") != 1 {
		t.Errorf("got log %s, want trouble once, and its end", logged.text.String())
	}
}

// What cannot be read is ignored, counted and logged once; the last good one stays.
func TestRedisBadEntries(t *testing.T) {
	t.Parallel()
	s, logged := redistest.Start(t), new(log)
	a := newRedis(t, s.Client(), &overrides.RedisOptions{Prefix: "rl", Logger: slog.New(slog.NewTextHandler(logged, nil))})
	set(t, a, "p", "usr=1", overrides.Override{Limit: hourly})
	set(t, a, "p", "usr=2", overrides.Override{Limit: hourly})
	for key, value := range map[string]string{
		"usr=1": `{"limit":"many"}`, "usr=3": `{"mode":"off","why":"?"}`, "usr=4": `{"mode":"off"}{}`, "usr=5": "", "*": `{"mode":"banned"}`,
	} {
		if err := s.Client().HSet(ctx, "rl:{#overrides}:of:p", key, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		set(t, a, "p", "usr=6", overrides.Override{})
	}
	wantFound(t, a, "p", "usr=1", overrides.Override{Limit: hourly})
	wantFound(t, a, "p", "usr=2", overrides.Override{Limit: hourly})
	for _, key := range []string{"usr=3", "usr=4", "usr=5", "*"} {
		wantNone(t, a, "p", key)
	}
	if got := a.Stats(); got.Bad != 5 || got.Overrides != 3 || logged.count("mean nothing") != 1 {
		t.Errorf("got stats %+v and log %s, want 5 bad ones, logged once", got, logged.text.String())
	}
	if all, err := a.List(ctx, "p"); err != nil || len(all) != 2 {
		t.Errorf("got %v, error %v, want two", all, err)
	}
	set(t, a, "p", "usr=1", overrides.Override{Mode: overrides.Off})
	wantFound(t, a, "p", "usr=1", overrides.Override{Mode: overrides.Off})
	if got := a.Stats().Bad; got != 4 {
		t.Errorf("got %d bad ones, want 4", got)
	}
}

// A hash that is none leaves what was known, and the other policies, alone.
func TestRedisWrongType(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a := newRedis(t, s.Client(), nil)
	set(t, a, "p", "usr=1", overrides.Override{Limit: hourly})
	pipe := s.Client().Pipeline()
	pipe.Set(ctx, "penstock:{#overrides}:of:p", "text", 0)
	pipe.HSet(ctx, "penstock:{#overrides}:versions", "p", "another")
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	set(t, a, "q", "usr=1", overrides.Override{Limit: hourly})
	if err := a.Refresh(ctx); err == nil {
		t.Error("got no error of Refresh")
	}
	wantFound(t, a, "p", "usr=1", overrides.Override{Limit: hourly})
	wantFound(t, a, "q", "usr=1", overrides.Override{Limit: hourly})
}

// What has ended is removed everywhere, but not what was set again since.
func TestRedisSweeps(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a, b := newRedis(t, s.Client(), nil), newRedis(t, s.Client(), nil)
	short := overrides.Override{Mode: overrides.Banned, Until: time.Now().Add(300 * time.Millisecond)}
	for i := range 10 {
		set(t, a, "p", "usr="+strconv.Itoa(i), short)
	}
	set(t, a, "q", "usr=1", short)
	eventually(t, "seen by b", func() bool { return b.Stats().Overrides == 11 })
	eventually(t, "ended", func() bool { return !short.Live() })
	set(t, b, "p", "usr=1", overrides.Override{Limit: hourly})
	a.Sweep(ctx)
	if n, err := s.Client().HLen(ctx, "penstock:{#overrides}:of:p").Result(); err != nil || n != 1 {
		t.Errorf("got %d, error %v, want the one that was set again", n, err)
	}
	if n, err := s.Client().Exists(ctx, "penstock:{#overrides}:of:q").Result(); err != nil || n != 0 {
		t.Errorf("got %d, error %v, want none", n, err)
	}
	eventually(t, "gone from memory", func() bool { return a.Stats().Overrides == 1 })
	wantFound(t, b, "p", "usr=1", overrides.Override{Limit: hourly})
}

// A policy is full at its bound, to the override.
func TestRedisIsBounded(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	fill := redis.NewScript(`for i = 2, tonumber(ARGV[1]) do redis.call('HSET', KEYS[1], ARGV[2] .. i, ARGV[3]) end`)
	full := func(key string, n int, value string) {
		t.Helper()
		if err := fill.Run(ctx, s.Client(), []string{"penstock:{#overrides}:" + key}, n, "p", value).Err(); err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
	}
	full("of:p", overrides.MaxPerPolicy, `{"mode":"off"}`)
	a := newRedis(t, s.Client(), nil)
	set(t, a, "p", "usr=1", overrides.Override{})
	set(t, a, "p", "usr=1", overrides.Override{Limit: hourly})
	if got := a.Stats().Overrides; got != overrides.MaxPerPolicy {
		t.Errorf("got %d overrides in memory, want %d", got, overrides.MaxPerPolicy)
	}
	if err := a.Set(ctx, "p", "usr=2", overrides.Override{}); !errors.Is(err, overrides.ErrFull) {
		t.Errorf("got error %v, want ErrFull", err)
	}
	wantFound(t, a, "p", "p77", overrides.Override{Mode: overrides.Off})
	full("of:p", overrides.MaxPerPolicy+50, `{"mode":"off"}`)
	set(t, a, "p", "usr=1", overrides.Override{Mode: overrides.Off})
	if got := a.Stats(); got.Overrides != overrides.MaxPerPolicy || got.Bad != 50 {
		t.Errorf("got %d overrides in memory and %d bad ones, want %d and 50", got.Overrides, got.Bad, overrides.MaxPerPolicy)
	}
	full("versions", overrides.MaxPolicies, "1")
	if err := a.Set(ctx, "another", "usr=2", overrides.Override{}); !errors.Is(err, overrides.ErrFull) {
		t.Errorf("got error %v, want ErrFull", err)
	}
	if err := a.Set(ctx, "p", "usr=2", overrides.Override{Mode: 9}); !errors.Is(err, overrides.ErrInvalid) {
		t.Errorf("got error %v, want ErrInvalid", err)
	}
}

// TestReadingsDoNotHoldUpOthers: who waits for another's reading waits no longer than it may.
func TestReadingsDoNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r := newRedis(t, server.Client(), nil)
	if err := r.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	first := make(chan error, 1)
	go func() { first <- r.Refresh(ctx) }()
	brief, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	errs := make(chan error, 2)
	for range 2 { // one of the three reads, and the client decides how long that takes
		go func() { errs <- r.Refresh(brief) }()
	}
	if err := <-errs; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	server.Continue()
	<-first
	<-errs
}
