// Tests of the bars, of the stored results, and of the clients.

package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/longtest"
)

// TestBarsAndStoredResults: slots meet every bar for every seed, and the stored page equals the output of the program.
// make herd writes it again.
func TestBarsAndStoredResults(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	want := page(t)
	if got, err := os.ReadFile(resultsFile); err != nil || !slices.Equal(seededLines(string(got)), seededLines(want)) {
		t.Errorf("%s differs from the output of make herd (%v)", resultsFile, err)
	}
}

// seededLines returns the lines of a page whose figures depend on the seed alone.
func seededLines(page string) []string {
	unseeded := regexp.MustCompile(`client\.Transport|retryablehttp`)
	return slices.DeleteFunc(strings.Split(page, "\n"), unseeded.MatchString)
}

// TestTransportsAreServed: real Transports are all served. Pace meets fewer denials, and nearly every client of slots needs
// one retry.
func TestTransportsAreServed(t *testing.T) {
	t.Parallel()
	ours, paced := simulate(t, sharedQuota, slotsOurs, shown), simulate(t, sharedQuota, slotsPaced, shown)
	for _, r := range []result{ours, paced, simulate(t, oneSuccess, slotsOurs, shown)} {
		if r.served != 1000 || r.perSuccess(r.denied()) > 1.1 {
			t.Errorf("%s: got %d served, %d denials", r.kind, r.served, r.denied())
		}
	}
	t.Logf("shared quota: %d denials in %v, with Pace %d in %v", ours.denied(), ours.done, paced.denied(), paced.done)
	if paced.denied() >= ours.denied() {
		t.Errorf("got %d denials with Pace, %d without", paced.denied(), ours.denied())
	}
}

// TestBarsCanBeMissed: the honest minimum misses the bars on requests. A bar that every kind met would say nothing.
func TestBarsCanBeMissed(t *testing.T) {
	t.Parallel()
	for _, b := range bars {
		r := simulate(t, b.setting, minimum, shown)
		if missed := b.miss([]result{r}) != nil; missed == (b.text == timeBar) {
			t.Errorf("%s: %s: the honest minimum misses it: %t", b.setting.name, b.text, missed)
		}
	}
}

// TestSameSeedSameFigures: the figures depend on the seed alone.
func TestSameSeedSameFigures(t *testing.T) {
	t.Parallel()
	a, b := simulate(t, sharedQuota, slotsOfFour, 3), simulate(t, sharedQuota, slotsOfFour, 3)
	c := simulate(t, sharedQuota, slotsOfFour, 4)
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
	const hint = 7 * time.Second
	last := func(n time.Duration) time.Duration { return max(0, n-1) }
	none := func(time.Duration) time.Duration { return 0 }
	for name, tt := range map[string]struct {
		client behaviour
		most   time.Duration
	}{
		"obedient": {obedient, 7 * time.Second}, "jittered": {jittered, 7700 * time.Millisecond},
	} {
		if got := tt.client(hint, 3, none); got != hint {
			t.Errorf("%s: got %v at least, want %v", name, got, hint)
		}
		if got := tt.client(hint, 3, last); got > tt.most || got < tt.most-1 {
			t.Errorf("%s: got %v at most, want %v", name, got, tt.most)
		}
	}
	for tries, want := range map[int]time.Duration{1: 500 * time.Millisecond, 2: time.Second, 7: 32 * time.Second, 8: time.Minute, 500: time.Minute} {
		if got := backoff(tries); got != want {
			t.Errorf("backoff(%d) = %v, want %v", tries, got, want)
		}
	}
}
