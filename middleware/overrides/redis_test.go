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

	"github.com/penstock-go/penstock/internal/redistest"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

func TestNewRedisReportsEveryMisconfiguration(t *testing.T) {
	_, err := overrides.NewRedis(nil, nil, &overrides.RedisOptions{Prefix: "a {b}"})
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
			ban := ratelimit.Override{Mode: ratelimit.ModeBanned, Until: time.Now().Add(time.Hour)}
			set(t, a, "p", "usr=1", ban)
			wantFound(t, a, "p", "usr=1", ban)
			set(t, b, "q", ratelimit.Everyone, ratelimit.Override{Limit: hourly})
			set(t, a, overrides.All, ratelimit.Everyone, ratelimit.Override{Mode: ratelimit.ModeOff})
			eventually(t, "seen by b", func() bool {
				_, p := b.Find("p", "usr=1")
				o, _ := b.Find("r", "usr=1")
				return p && o.Mode == ratelimit.ModeOff
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
			eventually(t, "cleared at a", func() bool { return a.Size() == 0 })
		})
	}
}

// While Redis is away, the overrides that were read last stay in force. When it is back, its overrides count again.
func TestRedisKilled(t *testing.T) {
	t.Parallel()
	s, logged := redistest.Start(t), new(log)
	a := newRedis(t, s.Client(), &overrides.RedisOptions{Logger: slog.New(slog.NewTextHandler(logged, nil))})
	set(t, a, "p", "usr=1", ratelimit.Override{Limit: hourly})
	s.Kill()
	eventually(t, "failing", func() bool { return logged.count("overrides not refreshed") > 0 })
	wantFound(t, a, "p", "usr=1", ratelimit.Override{Limit: hourly})
	if err := a.Set(ctx, "p", "usr=2", ratelimit.Override{}); err == nil || errors.Is(err, overrides.ErrInvalid) {
		t.Errorf("got error %v, want the client's", err)
	}
	if err := a.Clear(ctx, "p", "usr=1"); err == nil {
		t.Error("got no error of Clear")
	}
	if _, err := a.List(ctx, "p"); err == nil {
		t.Error("got no error of List")
	}
	wantFound(t, a, "p", "usr=1", ratelimit.Override{Limit: hourly})
	s.Restart() // empty
	eventually(t, "following Redis", func() bool { _, ok := a.Find("p", "usr=1"); return !ok })
	eventually(t, "logged", func() bool { return logged.count("overrides refreshed again") > 0 })
	if logged.count("overrides not refreshed") != 1 || logged.count("overrides refreshed again") != 1 {
		t.Errorf("got log %s, want trouble once, and its end", logged.text.String())
	}
}

// Unreadable overrides are ignored, counted and logged once. The last good one stays.
func TestRedisBadEntries(t *testing.T) {
	t.Parallel()
	s, logged := redistest.Start(t), new(log)
	a := newRedis(t, s.Client(), &overrides.RedisOptions{Prefix: "rl", Logger: slog.New(slog.NewTextHandler(logged, nil))})
	set(t, a, "p", "usr=1", ratelimit.Override{Limit: hourly})
	set(t, a, "p", "usr=2", ratelimit.Override{Limit: hourly})
	for key, value := range map[string]string{
		"usr=1": `{"limit":"many"}`, "usr=3": `{"mode":"off","why":"?"}`, "usr=4": `{"mode":"off"}{}`, "usr=5": "", "*": `{"mode":"banned"}`, "usr=7": `{"mode":"loud"}`,
	} {
		if err := s.Client().HSet(ctx, "rl:{#overrides}:of:p", key, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		set(t, a, "p", "usr=6", ratelimit.Override{})
	}
	wantFound(t, a, "p", "usr=1", ratelimit.Override{Limit: hourly})
	wantFound(t, a, "p", "usr=2", ratelimit.Override{Limit: hourly})
	for _, key := range []string{"usr=3", "usr=4", "usr=5", "usr=7", "*"} {
		wantNone(t, a, "p", key)
	}
	eventually(t, "logged", func() bool { return logged.count("unreadable overrides") > 0 })
	if logged.count("overrides=6") != 1 || logged.count("unreadable overrides") != 1 {
		t.Errorf("got log %s, want 6 unreadable, logged once", logged.text.String())
	}
	if all, err := a.List(ctx, "p"); err != nil || len(all) != 2 {
		t.Errorf("got %v, error %v, want two", all, err)
	}
	set(t, a, "p", "usr=1", ratelimit.Override{Mode: ratelimit.ModeOff})
	wantFound(t, a, "p", "usr=1", ratelimit.Override{Mode: ratelimit.ModeOff})
}

// A stored value of the wrong type affects neither the known overrides nor other policies.
func TestRedisWrongType(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a := newRedis(t, s.Client(), nil)
	set(t, a, "p", "usr=1", ratelimit.Override{Limit: hourly})
	pipe := s.Client().Pipeline()
	pipe.Set(ctx, "penstock:{#overrides}:of:p", "text", 0)
	pipe.HSet(ctx, "penstock:{#overrides}:versions", "p", "another")
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	set(t, a, "q", "usr=1", ratelimit.Override{Limit: hourly})
	if err := a.Refresh(ctx); err == nil {
		t.Error("got no error of Refresh")
	}
	wantFound(t, a, "p", "usr=1", ratelimit.Override{Limit: hourly})
	wantFound(t, a, "q", "usr=1", ratelimit.Override{Limit: hourly})
}

// Ended overrides are removed everywhere, unless they were set again.
func TestRedisSweeps(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a, b := newRedis(t, s.Client(), nil), newRedis(t, s.Client(), nil)
	short := ratelimit.Override{Mode: ratelimit.ModeBanned, Until: time.Now().Add(5 * time.Second)} // a busy machine sets eleven in time
	for i := range 10 {
		set(t, a, "p", "usr="+strconv.Itoa(i), short)
	}
	set(t, a, "q", "usr=1", short)
	eventually(t, "seen by b", func() bool { return b.Size() == 11 })
	eventually(t, "ended", func() bool { return !time.Now().Before(short.Until) })
	set(t, b, "p", "usr=1", ratelimit.Override{Limit: hourly})
	a.Sweep(ctx)
	if n, err := s.Client().HLen(ctx, "penstock:{#overrides}:of:p").Result(); err != nil || n != 1 {
		t.Errorf("got %d, error %v, want one that was set again", n, err)
	}
	if n, err := s.Client().Exists(ctx, "penstock:{#overrides}:of:q").Result(); err != nil || n != 0 {
		t.Errorf("got %d, error %v, want none", n, err)
	}
	eventually(t, "gone from memory", func() bool { return a.Size() == 1 })
	wantFound(t, b, "p", "usr=1", ratelimit.Override{Limit: hourly})
}

// A policy takes exactly MaxPerPolicy overrides.
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
	set(t, a, "p", "usr=1", ratelimit.Override{})
	set(t, a, "p", "usr=1", ratelimit.Override{Limit: hourly})
	if got := a.Count("p"); got[""] != 1 || got[ratelimit.ModeOff] != overrides.MaxPerPolicy-1 {
		t.Errorf("got overrides %v in memory, want %d", got, overrides.MaxPerPolicy)
	}
	if err := a.Set(ctx, "p", "usr=2", ratelimit.Override{}); !errors.Is(err, overrides.ErrFull) {
		t.Errorf("got error %v, want ErrFull", err)
	}
	wantFound(t, a, "p", "p77", ratelimit.Override{Mode: ratelimit.ModeOff})
	full("of:p", overrides.MaxPerPolicy+50, `{"mode":"off"}`)
	set(t, a, "p", "usr=1", ratelimit.Override{Mode: ratelimit.ModeOff})
	if got := a.Count("p")[ratelimit.ModeOff]; got != overrides.MaxPerPolicy {
		t.Errorf("got %d overrides in memory, want %d", got, overrides.MaxPerPolicy)
	}
	full("versions", overrides.MaxPolicies, "1")
	if err := a.Set(ctx, "another", "usr=2", ratelimit.Override{}); !errors.Is(err, overrides.ErrFull) {
		t.Errorf("got error %v, want ErrFull", err)
	}
	if err := a.Set(ctx, "p", "usr=2", ratelimit.Override{Mode: "loud"}); !errors.Is(err, overrides.ErrInvalid) {
		t.Errorf("got error %v, want ErrInvalid", err)
	}
}

// TestReadingsDoNotHoldUpOthers: a Refresh that waits for another reading ends with its own context.
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
	for range 2 { // one of the three reads, for as long as the client waits
		go func() { errs <- r.Refresh(brief) }()
	}
	if err := <-errs; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	server.Continue()
	<-first
	<-errs
}
