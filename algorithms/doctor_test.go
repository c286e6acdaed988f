package algorithms_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// codes returns what was found, e.g. "PS201 PS203".
func codes(all []algorithms.Finding) string {
	var text []string
	for _, f := range all {
		text = append(text, f.Code)
	}
	return strings.Join(text, " ")
}

// TestFindings: each mistake is found by its code, and what is well is not.
func TestFindings(t *testing.T) {
	t.Parallel()
	full := []string{"--maxmemory", "100mb", "--maxmemory-policy"}
	for _, tt := range []struct {
		name   string
		server []string
		set    func(*redis.Options)
		want   string
		says   string
	}{
		{name: "nothing"},
		{name: "no eviction", server: append(full, "noeviction")},
		{name: "eviction", server: append(full, "allkeys-lru"), want: "PS201", says: "maxmemory-policy is allkeys-lru"},
		{name: "eviction of what expires", server: append(full, "volatile-ttl"), want: "PS201", says: "volatile-ttl"},
		{name: "eviction of nothing", server: []string{"--maxmemory-policy", "allkeys-lru"}},
		{name: "a short timeout", set: func(o *redis.Options) { o.ReadTimeout = 10 * time.Millisecond }, want: "PS203", says: "ReadTimeout of 10ms is shorter than the deadline of 1s"},
		{name: "a timeout above it", set: func(o *redis.Options) { o.ReadTimeout = 1100 * time.Millisecond }},
		{name: "a short timeout of writes", set: func(o *redis.Options) { o.WriteTimeout = 20 * time.Millisecond }, want: "PS203", says: "WriteTimeout of 20ms"},
		{name: "no timeout", set: func(o *redis.Options) { o.ReadTimeout = -1 }, want: "PS204", says: "without end"},
		{name: "a small pool", set: func(o *redis.Options) { o.PoolSize = 1 }, want: "PS205", says: "PoolSize is 1, and InFlight 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			all := newRedis(t, client(t, redistest.Start(t, tt.server...).Addr(), tt.set), new(algorithms.RedisOptions)).Findings(t.Context())
			if got := codes(all); got != tt.want || tt.says != "" && !strings.Contains(all[0].Sentence, tt.says) {
				t.Errorf("got %+v, want %q that says %q", all, tt.want, tt.says)
			}
			for _, f := range all {
				if f.Remedy == "" || time.Since(f.First) > time.Minute {
					t.Errorf("got %+v, want a remedy and when it was found", f)
				}
			}
		})
	}
}

// An infoClient answers INFO with a text, or everything with an error.
type infoClient struct {
	text  string
	err   error
	asked atomic.Int32 // for INFO
}

func (c *infoClient) Process(_ context.Context, cmd redis.Cmder) error {
	if cmd.Name() == "info" {
		c.asked.Add(1)
	}
	if s, ok := cmd.(*redis.StringCmd); ok && c.err == nil && cmd.Args()[1] == "server" {
		s.SetVal(c.text)
	}
	return c.err
}

func TestFindingsOfVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"5.0.14": "PS202", "6.0.16": "PS202", "6": "PS202", "6.1.240": "PS202",
		"6.2.0": "", "6.10.1": "", "7.0.15": "", "10.0": "", "unknown": "", "": "",
	} {
		r := newRedis(t, &infoClient{text: "# Server\r\nredis_version:" + version + "\r\n"}, new(algorithms.RedisOptions))
		if got := codes(r.Findings(t.Context())); got != want {
			t.Errorf("of version %q: got %q, want %q", version, got, want)
		}
	}
}

// TestFindingsAreObservedOnce: Ready is where a program learns of them at start, and what was found stays.
func TestFindingsAreObservedOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru")
	var mu sync.Mutex
	var observed []algorithms.Finding
	s := newShared(t, client(t, server.Addr(), func(o *redis.Options) { o.ReadTimeout = 900 * time.Millisecond }), &algorithms.Options{
		Fallback: algorithms.FallbackOptions{Deadline: 10 * time.Second},
		Observe: func(e algorithms.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind == algorithms.EventFinding {
				observed = append(observed, e.Finding)
			}
		},
	})
	for range 3 {
		if err := s.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	if got := codes(observed); got != "PS203 PS201" {
		t.Errorf("Ready has observed %q", got)
	}
	mu.Unlock()
	found := s.Findings(t.Context())
	server.Kill()
	gone, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	again := s.Findings(gone)
	mu.Lock()
	defer mu.Unlock()
	if codes(observed) != "PS203 PS201" || codes(found) != "PS203 PS201" || codes(again) != "PS203 PS201" || again[1].First != observed[1].First {
		t.Errorf("observed %v, found %v, and without Redis %v, want each the same", observed, found, again)
	}
}

// TestFindingsWithoutRights: a user who may not ask has no findings, and is not an error.
func TestFindingsWithoutRights(t *testing.T) {
	t.Parallel()
	c := clientWithRights(t, "~*", "+@all", "-info")
	r := newRedis(t, c, new(algorithms.RedisOptions))
	if err := r.Ready(t.Context()); err != nil || len(r.Findings(t.Context())) != 0 {
		t.Errorf("got %v and %v, want neither", err, r.Findings(t.Context()))
	}
}

// TestFindingsAreNotForcedOut: who refuses to tell is asked once, and a Redis in trouble is left alone.
func TestFindingsAreNotForcedOut(t *testing.T) {
	t.Parallel()
	refusing := &infoClient{err: errors.New("NOPERM this user has no permissions to run the 'info' command")}
	r := newRedis(t, refusing, new(algorithms.RedisOptions))
	r.Findings(t.Context())
	r.Findings(t.Context())
	if got := refusing.asked.Load(); got != 1 {
		t.Errorf("who has no right asked %d times, want 1", got)
	}
	locked := &infoClient{err: errors.New("WRONGPASS invalid username-password pair or user is disabled.")}
	r = newRedis(t, locked, new(algorithms.RedisOptions))
	r.Findings(t.Context())
	r.Findings(t.Context()) // the password may be right by now
	if got := locked.asked.Load(); got != 2 {
		t.Errorf("who had the wrong password asked %d times, want 2", got)
	}
	down := &infoClient{err: errors.New("LOADING Redis is loading the dataset in memory")}
	s := newShared(t, down, nil)
	await(t, "the circuit opens", func() bool {
		checks := []algorithms.Check{{Policy: "p", Key: "usr=1", Limit: algorithms.TokenBucket(1, time.Second), Cost: 1}}
		_ = s.Allow(t.Context(), checks) // decided locally
		return s.Stats().Fallback.Open
	})
	s.Findings(t.Context())
	if got := down.asked.Load(); got != 0 {
		t.Errorf("asked a Redis in trouble %d times, want 0", got)
	}
}
