// Properties of the pace, for random responses at random times.

package client

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
	"pgregory.net/rapid"
)

// TestPaceProperties: a denial's wait is kept, as far as requests wait. No delay is longer
// than the interval's bound or the block, and some request may always leave after p.most.
func TestPaceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Hour)).Draw(t, "most"))
		p, now := newPace(most), time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		duration := rapid.OneOf(rapid.Int64Range(-1, int64(2*time.Hour)), rapid.Just(int64(headers.Never)))
		number := rapid.OneOf(rapid.Int64Range(-1, 100), rapid.Just(int64(999_999_999_999_999)))
		var kept time.Time // the end of the longest wait of a denial
		for range rapid.IntRange(1, 40).Draw(t, "responses") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(10*time.Minute)).Draw(t, "passes")))
			turn := p.depart(now)
			f := &headers.Fields{Limits: []headers.ServiceLimit{{
				Remaining: number.Draw(t, "r"), Within: time.Duration(duration.Draw(t, "t")),
				Quota: number.Draw(t, "q"), Window: max(time.Duration(duration.Draw(t, "w")), 0),
			}}}
			denied := rapid.Bool().Draw(t, "denied")
			if denied {
				f.From, f.Wait = "Retry-After", max(time.Duration(duration.Draw(t, "wait")), 0)
				if end := now.Add(f.Wait); end.After(kept) {
					kept = end
				}
			}
			p.learn(turn-min(turn-1, uint64(rapid.IntRange(0, 3).Draw(t, "late"))), f, denied, now)

			got := p.delay(now)
			if told := kept.Sub(now); got < told && got < most {
				t.Fatalf("may leave in %v, told to wait %v: %+v", got, told, p)
			}
			if block := max(p.blocked.Sub(now), 0); got < 0 || got > max(block, most) {
				t.Fatalf("leaves in %v of at most %v, blocked for %v", got, most, block)
			}
			if later := p.delay(now.Add(most)); later > most {
				t.Fatalf("leaves in %v after %v without a departure", later, most)
			}
			if p.stretch < 1 || p.stretch > mostStretch || p.spacing() < 0 || p.spacing() > most {
				t.Fatalf("got the spacing %v: %+v", p.spacing(), p)
			}
		}
	})
}
