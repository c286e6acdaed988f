// Denials that later answers confirm.

package shared

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A call that costs less does not make a spent key full: if its answer says that the
// denied cost still does not fit, the cost stays denied without the primary.
func TestCheaperCallsForgetNoDenial(t *testing.T) {
	t.Parallel()
	for _, l := range spendable(20, time.Hour) {
		for cost := range int64(2) {
			t.Run(fmt.Sprintf("%v/%d", l, cost), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(22 * time.Hour) // the day has two hours left
					w := remembering(t, Options{})
					w.take("usr=1", l, 17)
					free := time.Now().Add(w.take("usr=1", l, 5).RetryAfter)
					time.Sleep(2 * freshFor)
					if got := w.take("usr=1", l, cost); !got.Allowed {
						t.Fatalf("got %+v, want a cost of %d to fit", got, cost)
					}
					w.trip()
					for time.Now().Before(free) {
						if got := w.take("usr=1", l, 5); got.Allowed {
							t.Fatalf("%v before 5 units fit: got %+v, want the denial of the primary", time.Until(free), got)
						}
						time.Sleep(min(time.Minute, time.Until(free)))
					}
				})
			})
		}
	}
}

// A denial of many units does not replace a denial of few until the same instant: a spent
// day stays spent for every cost.
func TestLargerDenialsForgetNoSmallerOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, day := remembering(t, Options{}), algorithms.PerDay(20, time.UTC)
		w.take("usr=1", day, 20)
		w.take("usr=1", day, 1)
		time.Sleep(2 * freshFor)
		w.take("usr=1", day, 5)
		w.trip()
		for _, cost := range []int64{1, 5} {
			if got := w.take("usr=1", day, cost); got.Allowed {
				t.Errorf("a cost of %d: got %+v, want the denial of the primary", cost, got)
			}
		}
	})
}

// An answer that shows room for the denied cost drops the denial, also if the call that
// received it cost nothing.
func TestAnswerThatShowsRoomForgetsADenial(t *testing.T) {
	t.Parallel()
	for _, l := range spendable(20, time.Hour) {
		t.Run(l.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := remembering(t, Options{})
				w.take("usr=1", l, 17)
				w.take("usr=1", l, 5)
				// Another instance resets the key.
				reset := []algorithms.Check{{Policy: "default", Key: "usr=1", Limit: l, Op: algorithms.Reset}}
				if err := w.shared.store.Allow(t.Context(), reset); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * freshFor)
				w.take("usr=1", l, 0)
				w.trip()
				if got := w.take("usr=1", l, 5); !got.Allowed || got.Source != algorithms.Local {
					t.Errorf("got %+v, want 5 units of the share of this instance", got)
				}
			})
		})
	}
}

// A cost above the burst never fits. Its denial is confirmed without end, and the memory
// answers it for a second after each answer of the primary, as it answers others.
func TestConfirmedDenialAboveTheBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := remembering(t, Options{}), algorithms.TokenBucket(10, time.Hour)
		hits := func(when string, want uint64) {
			t.Helper()
			if n := w.views.denied.Load(); n != want {
				t.Errorf("%s: the memory has answered %d calls, want %d", when, n, want)
			}
		}
		time.Sleep(time.Second) // the memory counts instants from its start
		w.take("usr=1", l, 11)
		w.take("usr=1", l, 11)
		hits("denied again", 1)
		w.take("usr=1", l, 1)
		w.take("usr=1", l, 11)
		hits("confirmed by a cheaper call", 2)
		time.Sleep(2 * freshFor)
		w.take("usr=1", l, 11)
		hits("two seconds later", 2)
	})
}
