// What Findings finds.

package shared

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// codes returns the codes of findings, separated by blanks.
func codes(all []algorithms.Finding) string {
	var text []string
	for _, f := range all {
		text = append(text, f.Code)
	}
	return strings.Join(text, " ")
}

// Eviction is found, and a good configuration has no finding.
func TestFindings(t *testing.T) {
	t.Parallel()
	full := []string{"--maxmemory", "100mb", "--maxmemory-policy"}
	for _, tt := range []struct {
		name   string
		server []string
		says   string // "": no finding
	}{
		{"nothing", nil, ""},
		{"no eviction", append(full, "noeviction"), ""},
		{"eviction", append(full, "allkeys-lru"), "maxmemory-policy is allkeys-lru"},
		{"eviction of what expires", append(full, "volatile-ttl"), "volatile-ttl"},
		{"eviction of nothing", []string{"--maxmemory-policy", "allkeys-lru"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			all := newRedis(t, redistest.Start(t, tt.server...).Client(), &Options{Deadline: time.Second}).Findings(t.Context())
			want := ""
			if tt.says != "" {
				want = "PS201"
			}
			if got := codes(all); got != want || want != "" && !strings.Contains(all[0].Sentence, tt.says) {
				t.Errorf("got %+v, want %q that says %q", all, want, tt.says)
			}
			for _, f := range all {
				if f.Remedy == "" || time.Since(f.First) > time.Minute {
					t.Errorf("got %+v, want a remedy and when it was found", f)
				}
			}
		})
	}
}

// Ready reports findings when a program starts. Each is logged once, and stays while
// Redis cannot be asked.
func TestFindingsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru")
	var logged logRecords
	l := must(t, server.Client(), &Options{Deadline: 10 * time.Second, Logger: logged.logger()})
	const problem = logPrefix + "configuration problem"
	for range 3 {
		if err := l.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	redistest.Until(t, "the finding is logged", func() bool { return logged.attr(problem, "code") == "PS201" })
	found := l.Findings(t.Context())
	server.Kill()
	gone, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if again := l.Findings(gone); codes(found) != "PS201" || !slices.Equal(again, found) {
		t.Errorf("got %v, and without Redis %v, want PS201 twice", found, again)
	}
	_ = l.Close() // writes all lines
	if n := logged.count(problem); n != 1 {
		t.Errorf("the finding is logged %d times, want once", n)
	}
}

// A finding whose cause ends is gone, and is new and logged again if the cause
// comes back.
func TestFindingComesBack(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru").Client()
	var logged logRecords
	l := must(t, client, &Options{Deadline: time.Minute, Logger: logged.logger()})
	evicts := func(policy string) []algorithms.Finding {
		do(t, client, "config", "set", "maxmemory-policy", policy)
		return l.Findings(t.Context())
	}
	first := evicts("allkeys-lru")
	if other := evicts("volatile-lru"); codes(first) != "PS201" || codes(other) != "PS201" || other[0].First != first[0].First {
		t.Fatalf("got %+v, and with another policy %+v, want one finding", first, other)
	}
	if got := evicts("noeviction"); len(got) > 0 {
		t.Errorf("got %+v without eviction, want none", got)
	}
	if again := evicts("allkeys-lru"); codes(again) != "PS201" || !again[0].First.After(first[0].First) {
		t.Errorf("got %+v after its cause came back, want a new finding", again)
	}
	_ = l.Close()
	if n := logged.count(logPrefix + "configuration problem"); n != 2 {
		t.Errorf("the finding is logged %d times, want twice", n)
	}
}

// A Cluster's client that waits before it follows a redirection is found.
func TestFindingOfABackoff(t *testing.T) {
	t.Parallel()
	for backoff, want := range map[time.Duration]string{0: "PS203", time.Millisecond: "PS203", -1: ""} {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, MinRetryBackoff: backoff, MaxRetryBackoff: backoff})
		t.Cleanup(func() { _ = client.Close() })
		if got := newRedis(t, client, nil).Findings(t.Context()); codes(got) != want {
			t.Errorf("MinRetryBackoff %v: got %v, want %q", backoff, got, want)
		}
	}
}

// A program that does not set Instances, and runs on several, is found after a minute.
func TestFindingOfSeveralInstances(t *testing.T) {
	for name, tt := range map[string]struct {
		o    Options
		want string
	}{
		"default": {Options{}, "PS202"},
		"one":     {Options{Instances: 1}, "PS202"},
		"as many": {Options{Instances: 3}, ""},
		"fewer":   {Options{Instances: 2}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &logRecords{}
				tt.o.Logger = log.logger()
				live := func(n int64) redistest.Step { return redistest.On("zcard", redistest.Reply(n)) }
				c := redistest.Script(nil, live(1))
				l := must(t, c, &tt.o)
				time.Sleep(time.Hour + time.Second) // between two beats
				c.Set(live(3))
				time.Sleep(severalFor - beatEvery)
				if got := l.Findings(t.Context()); codes(got) != "" {
					t.Errorf("before a minute: got %v, want no finding", got)
				}
				time.Sleep(2 * beatEvery)
				got := l.Findings(t.Context())
				if codes(got) != tt.want || tt.want != "" && got[0].Remedy != "Set Options.Instances to 3." {
					t.Errorf("after a minute: got %v, want %q with its remedy", got, tt.want)
				}
				if n := log.count(logPrefix + "configuration problem"); n != len(got) {
					t.Errorf("got %d lines, want %d", n, len(got))
				}
				c.Set(live(1))
				time.Sleep(beatEvery)
				if got := l.Findings(t.Context()); codes(got) != "" {
					t.Errorf("with one instance: got %v, want no finding", got)
				}
			})
		})
	}
}

// A user without permission for INFO has no findings, and that is not an error.
func TestFindingsWithoutPermission(t *testing.T) {
	t.Parallel()
	r := newRedis(t, clientWithPermissions(t, redistest.Start(t), "~*", "+@all", "-info"), &Options{Deadline: time.Second})
	if err := r.redis.ready(t.Context()); err != nil || len(r.Findings(t.Context())) != 0 {
		t.Errorf("got %v and %v, want neither", err, r.Findings(t.Context()))
	}
}

// Redis is not asked for INFO while it is bypassed.
func TestFindingsAreNotForced(t *testing.T) {
	t.Parallel()
	down := redistest.Script(nil, redistest.Fail(errors.New("LOADING Redis is loading the dataset in memory")))
	l := must(t, down, nil)
	redistest.Until(t, "the circuit opens", func() bool {
		_, _ = algorithms.Allow(t.Context(), l, "usr=1", algorithms.TokenBucket(1, time.Second)) // decided locally
		return l.Stats().Fallback.Open > 0
	})
	l.Findings(t.Context())
	if got := down.Count("info"); got != 0 {
		t.Errorf("asked a Redis in trouble %d times, want 0", got)
	}
}
