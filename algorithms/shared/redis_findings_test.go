// What Findings finds.

package shared

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// codes returns the codes of findings, e.g. "PS201 PS203".
func codes(all []algorithms.Finding) string {
	var text []string
	for _, f := range all {
		text = append(text, f.Code)
	}
	return strings.Join(text, " ")
}

// Each problem is found by its code, and a good configuration has none.
func TestFindings(t *testing.T) {
	t.Parallel()
	full := []string{"--maxmemory", "100mb", "--maxmemory-policy"}
	for _, tt := range []struct {
		name   string
		server []string
		set    func(*redis.Options)
		want   string
		says   string
		most   int // in flight
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
		{name: "a small pool", set: func(o *redis.Options) { o.PoolSize = 1 }},
		{name: "a pool below InFlight", set: func(o *redis.Options) { o.PoolSize = 1 }, most: 2, want: "PS205", says: "PoolSize is 1, and InFlight is 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client := clientOf(t, redistest.Start(t, tt.server...).Addr(), tt.set)
			all := newRedis(t, client, &Options{Deadline: time.Second, InFlight: tt.most}).Findings(t.Context())
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

func TestFindingsOfVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"5.0.14": "PS202", "6.0.16": "PS202", "6": "PS202", "6.1.240": "PS202",
		"6.2.0": "", "6.10.1": "", "7.0.15": "", "10.0": "", "unknown": "", "": "",
	} {
		r := newRedis(t, redistest.Script(nil, redistest.On("info server", redistest.Reply("# Server\r\nredis_version:"+version+"\r\n"))), nil)
		if got := codes(r.Findings(t.Context())); got != want {
			t.Errorf("of version %q: got %q, want %q", version, got, want)
		}
	}
}

// Ready reports findings when a program starts. Each is logged once, and stays
// while Redis cannot be asked.
func TestFindingsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru")
	client := clientOf(t, server.Addr(), func(o *redis.Options) { o.ReadTimeout = 900 * time.Millisecond })
	var logged logRecords
	l := must(t, client, &Options{Deadline: 10 * time.Second, Logger: logged.logger()})
	var found []algorithms.Finding
	wantLogged := func(when string) {
		t.Helper()
		n := 0
		for _, message := range logged.messages() {
			if message == logPrefix+"configuration problem" {
				n++
			}
		}
		if last := logged.attr(logPrefix+"configuration problem", "code"); n != 2 || last != "PS201" {
			t.Errorf("%s: %d findings are logged, the last of them %v, want PS203 and PS201", when, n, last)
		}
	}
	for range 3 {
		if err := l.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wantLogged("after Ready")
	found = l.Findings(t.Context())
	server.Kill()
	gone, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	again := l.Findings(gone)
	if codes(found) != "PS203 PS201" || codes(again) != "PS203 PS201" || again[1].First != found[1].First {
		t.Errorf("got %v, and without Redis %v, want the same", found, again)
	}
	wantLogged("after all")
}

// A user without permission for INFO has no findings, and that is not an error.
func TestFindingsWithoutPermission(t *testing.T) {
	t.Parallel()
	r := newRedis(t, clientWithPermissions(t, redistest.Start(t), "~*", "+@all", "-info"), &Options{Deadline: time.Second})
	if err := r.redis.ready(t.Context()); err != nil || len(r.Findings(t.Context())) != 0 {
		t.Errorf("got %v and %v, want neither", err, r.Findings(t.Context()))
	}
}

// Redis is not asked again for INFO if it refuses, nor while it is bypassed.
func TestFindingsAreNotForced(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"NOPERM this user has no permissions to run the 'info' command": 1,
		"WRONGPASS invalid username-password pair or user is disabled.": 2, // the password may be right by now
	} {
		c := redistest.Script(nil, redistest.Fail(errors.New(text)))
		r := newRedis(t, c, nil)
		r.Findings(t.Context())
		r.Findings(t.Context())
		if got := c.Count("info"); got != want {
			t.Errorf("%s: asked %d times, want %d", text, got, want)
		}
	}
	down := redistest.Script(nil, redistest.Fail(errors.New("LOADING Redis is loading the dataset in memory")))
	l := must(t, down, nil)
	redistest.Until(t, "the circuit opens", func() bool {
		_, _ = algorithms.Allow(t.Context(), l, "usr=1", algorithms.TokenBucket(1, time.Second)) // decided locally
		return l.Stats().Fallback.Open
	})
	l.Findings(t.Context())
	if got := down.Count("info"); got != 0 {
		t.Errorf("asked a Redis in trouble %d times, want 0", got)
	}
}

// A dismissed finding stays dismissed until its cause ends.
func TestDismissedFinding(t *testing.T) {
	t.Parallel()
	client := clientOf(t, redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru").Addr(), nil)
	l := newRedis(t, client, &Options{Deadline: time.Second})
	evicts := func(policy string) []algorithms.Finding {
		if err := client.ConfigSet(t.Context(), "maxmemory-policy", policy).Err(); err != nil {
			t.Fatal(err)
		}
		return l.Findings(t.Context())
	}
	if l.Dismiss("PS201") {
		t.Error("a finding was dismissed before it was found")
	}
	if all := evicts("allkeys-lru"); codes(all) != "PS201" || !all[0].Dismissed.IsZero() {
		t.Fatalf("got %+v, want PS201", all)
	}
	if l.Dismiss("PS205") || !l.Dismiss("PS201") {
		t.Error("another finding was dismissed, or PS201 was not")
	}
	if all := evicts("volatile-lru"); codes(all) != "PS201" || time.Since(all[0].Dismissed) > time.Minute {
		t.Errorf("got %+v, want PS201, dismissed just now", all)
	}
	evicts("noeviction")
	if all := evicts("allkeys-lru"); codes(all) != "PS201" || !all[0].Dismissed.IsZero() {
		t.Errorf("got %+v after its cause had ended, want it as a new finding", all)
	}
}
