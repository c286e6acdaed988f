// Tests of the bars, of the stored results, and of the clients.

package main

import (
	"net/http"
	"os"
	"testing"
	"time"
)

// TestBarsAndStoredResults: slots meet every bar for every seed, and the stored page and plots are what the program
// writes. make herd writes them again.
func TestBarsAndStoredResults(t *testing.T) {
	t.Parallel()
	files, err := simulatedFiles(t)
	if err != nil {
		t.Error(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s is not what make herd writes (%v)", name, err)
		}
	}
}

// TestBarsCanBeMissed: the honest minimum misses the bars on requests, so that these say something.
func TestBarsCanBeMissed(t *testing.T) {
	t.Parallel()
	for _, b := range bars {
		r := simulate(t, b.setting, minimum, shown)
		if missed := b.miss([]result{r}) != nil; missed == (b.text == "time until all are served, of the ideal") {
			t.Errorf("%s: %s: the honest minimum misses it: %t", b.setting.name, b.text, missed)
		}
	}
}

// TestSameSeedSameFigures: nothing but the seed decides.
func TestSameSeedSameFigures(t *testing.T) {
	t.Parallel()
	a, b := simulate(t, sharedQuota, slotsPaced, 3), simulate(t, sharedQuota, slotsPaced, 3)
	c := simulate(t, sharedQuota, slotsPaced, 4)
	if a.requests != b.requests || a.done != b.done {
		t.Errorf("got %d requests in %v, then %d in %v", a.requests, a.done, b.requests, b.done)
	}
	if a.done == c.done {
		t.Errorf("two seeds both took %v", a.done)
	}
}

// TestClientsAreNeverEarly: clients that heed Retry-After wait at least as long, and at most as their policy says.
func TestClientsAreNeverEarly(t *testing.T) {
	t.Parallel()
	h := hint{retryAfter: 7 * time.Second, remaining: -1}
	last := func(n time.Duration) time.Duration { return max(0, n-1) }
	none := func(time.Duration) time.Duration { return 0 }
	for name, tt := range map[string]struct {
		client behaviour
		most   time.Duration
	}{
		"obedient": {obedient, 7 * time.Second}, "jittered": {jittered, 7700 * time.Millisecond}, "transport": {transport, 9 * time.Second},
	} {
		if got := tt.client.denied(h, 3, none); got != h.retryAfter {
			t.Errorf("%s: got %v at least, want %v", name, got, h.retryAfter)
		}
		if got := tt.client.denied(h, 3, last); got > tt.most || got < tt.most-1 {
			t.Errorf("%s: got %v at most, want %v", name, got, tt.most)
		}
	}
	for tries, want := range map[int]time.Duration{1: 500 * time.Millisecond, 2: time.Second, 7: 32 * time.Second, 8: time.Minute, 500: time.Minute} {
		if got := backoff(tries); got != want {
			t.Errorf("backoff(%d) = %v, want %v", tries, got, want)
		}
	}
}

// TestReadAndPace: what clients make of responses.
func TestReadAndPace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		field string
		hint  hint
		pace  time.Duration
	}{
		{`"all";r=4;t=2`, hint{remaining: 4, window: 2 * time.Second}, 500 * time.Millisecond},
		{`"all";r=0;t=3`, hint{remaining: 0, window: 3 * time.Second}, 3 * time.Second},
		{`"all";r=0`, hint{remaining: 0}, 0},
		{``, hint{remaining: -1}, 0},
		{`nonsense`, hint{remaining: -1}, 0},
	} {
		got := read(http.Header{"Ratelimit": {tt.field}})
		if got != tt.hint || pace(got) != tt.pace {
			t.Errorf("%q: got %+v and %v, want %+v and %v", tt.field, got, pace(got), tt.hint, tt.pace)
		}
	}
	if got := read(http.Header{"Retry-After": {"12"}}).retryAfter; got != 12*time.Second {
		t.Errorf("got %v, want 12s", got)
	}
}
