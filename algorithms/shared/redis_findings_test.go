// What Findings finds.

package shared

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

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
