// Shares that begin with what this process knows of the key.

package shared

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// countedLimits is a limit of each algorithm with a state of constant size.
func countedLimits(requests int64) (all []algorithms.Limit) {
	for _, l := range spendable(requests, 2*time.Hour) {
		if l.Step().Row.Counted {
			all = append(all, l)
		}
	}
	return all
}

// An outage gives a client that has used a part of its limit no whole share: of 61 units in use, each of four instances
// counts 15. A key of which the instance knows nothing has a whole share. So has a key whose units are back.
func TestSharesBeginWithTheUnitsInUse(t *testing.T) {
	for _, instances := range []int{1, 4} {
		for _, l := range countedLimits(100) {
			t.Run(fmt.Sprintf("%v/%d", l, instances), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := remembering(t, Options{Instances: instances})
					share := int64(100 / instances)
					for _, key := range []string{"usr=1", "usr=2"} {
						take(t, w.shared.store, key, l, 61)
						w.take(key, l, 40) // denied, so there is a view
					}
					w.trip()
					for key, want := range map[string]int64{"usr=1": share - int64(60/instances), "usr=3": share} {
						if got := w.drain(key, l); got != want {
							t.Errorf("%s: admitted %d, want %d", key, got, want)
						}
					}
					if instances == 1 {
						return // the whole limit comes back as its parts do
					}
					time.Sleep(2 * l.Window())
					if got := w.drain("usr=2", l); got != share {
						t.Errorf("two days later: admitted %d, want the whole share of %d", got, share)
					}
				})
			})
		}
	}
}

// A share begins only once with what one answer said, and what it has admitted itself is part of that: a
// second outage takes no room away.
func TestSharesBeginOnce(t *testing.T) {
	for _, l := range countedLimits(100) {
		synctest.Test(t, func(t *testing.T) {
			w := remembering(t, Options{Instances: 4})
			take(t, w.shared.store, "usr=1", l, 41)
			w.take("usr=1", l, 80)
			w.trip()
			for range 5 {
				w.take("usr=1", l, 1)
			}
			if got := w.localUse("usr=1", l); got != 15 {
				t.Errorf("%v: %d units of the share are in use, want 10 and the 5 that it admitted", l, got)
			}
			w.recovers()
			w.take("usr=1", l, 80) // denied, by a primary that has received the 5
			w.trip()
			w.take("usr=1", l, 1)
			if got := w.localUse("usr=1", l); got != 16 {
				t.Errorf("%v: %d units of the share are in use after the second outage, want one more", l, got)
			}
		})
	}
}
