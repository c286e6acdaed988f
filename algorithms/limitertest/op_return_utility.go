// What clients can use of a limit whose requests reserve more units than they use: the other side of the promise that
// returns never admit too much.

package limitertest

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// runUtility plays a language model's limit of 100 000 tokens per minute. Requests reserve 4 000 tokens and use 1 000.
// They come at random instants, 90 per minute on average, so they offer 90 % of the limit.
func runUtility(t *testing.T, s Subject) {
	for _, row := range []struct {
		answer time.Duration
		share  float64 // of the offer, at least
	}{
		{time.Second, 0.98}, {5 * time.Second, 0.98}, {20 * time.Second, 0.98}, {time.Minute, 0.94},
	} {
		t.Run("utility-"+row.answer.String(), func(t *testing.T) {
			t.Parallel()
			w := s.world(t, "clients can use nearly what they offer, whatever they reserve and however long answers take")
			offered, used := w.serve(rand.New(rand.NewPCG(1, 2)), row.answer)
			if got := float64(used) / float64(offered); got < row.share {
				w.errorf("answers of %v: got %.3f of the offer, want at least %.2f", row.answer, got, row.share)
			}
		})
	}
}

// serve plays requests for 25 minutes, and counts from the sixth minute on.
func (w *world) serve(r *rand.Rand, answer time.Duration) (offered, used int64) {
	const reserved, final, perMinute = 4_000, 1_000, 90
	l := algorithms.TokenBucket(100_000, time.Minute)
	var running []ending // the next one first
	for at := int64(0); at < 25*minute; at += int64(r.ExpFloat64() * minute / perMinute) {
		for len(running) > 0 && running[0].at <= at {
			w.to(running[0].at)
			w.one(back(running[0].take, reserved-final))
			running = running[1:]
		}
		w.to(at)
		c := w.allow(w.on("", l, reserved))[0]
		if at >= 5*minute {
			offered += final
			if c.Decision.Allowed {
				used += final
			}
		}
		if c.Decision.Allowed {
			half := answer.Microseconds() / 2
			running = append(running, ending{at + half + r.Int64N(2*half), c})
			slices.SortFunc(running, func(a, b ending) int { return cmp.Compare(a.at, b.at) })
		}
	}
	return offered, used
}

// An ending is the instant at which a request's answer is complete.
type ending struct {
	at   int64
	take algorithms.Check
}
