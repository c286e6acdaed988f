// Several instances that lose the primary, at once or one after the other.

package shared

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// instancesOf returns instances that share a primary. Each remembers denials, and has
// learnt from the census how many there are.
func instancesOf(t *testing.T, n int) (all []*world) {
	store := newStateStore()
	for range n {
		w := &world{t: t, shared: &fakePrimary{store: over(store), live: int64(n)}, memory: newMemory()}
		w.start(w.shared, &Options{Views: 100})
		all = append(all, w)
	}
	time.Sleep(7 * time.Second)
	return all
}

// Four instances lose the primary at once. Whatever it held, they admit together
// at most one share of the burst each, rounded up, and the rate of the whole
// limit. If the key was spent, and each instance knows it, they admit nothing
// before the primary would.
func TestInstancesAloneKeepTheSum(t *testing.T) {
	t.Parallel()
	const instances, burst = 4, 20
	for _, spent := range []int64{0, 9, 10, 15, 19, 20} {
		for _, l := range everyAlgorithm(burst, time.Minute) {
			t.Run(fmt.Sprintf("%v/%d", l, spent), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					all := instancesOf(t, instances)
					for range spent {
						all[0].take("usr=1", l, 1)
					}
					began, admitted := time.Now(), int64(0)
					if spent == burst {
						for _, w := range all {
							began = time.Now().Add(w.take("usr=1", l, 1).RetryAfter)
						}
					}
					for _, w := range all {
						w.shared.fails(errRefused)
					}
					drain := func() {
						for _, w := range all {
							admitted += w.drain("usr=1", l)
						}
						time.Sleep(100 * time.Millisecond)
					}
					for time.Until(began) > 100*time.Millisecond {
						drain()
					}
					if admitted > 0 {
						t.Errorf("admitted %d of a spent key", admitted)
					}
					time.Sleep(time.Until(began))
					for time.Since(began) < 40*time.Second {
						drain()
					}
					if most := burst + instances + int64(time.Since(began)*burst/time.Minute); admitted > most {
						t.Errorf("admitted %d in 40 s, want at most %d", admitted, most)
					}
				})
			})
		}
	}
}

// Four instances lose the primary one after the other, and reach it again one
// after the other. They admit together no more than the sum of the runbook:
//
//	B + R·T/W through the primary, and
//	B + N + R·M/W locally in each outage
//
// in a time T. In an outage, some instances have the primary and others have not
// for a time M. While none has it, the memories admit what the primary would
// have admitted. A fixed window admits R in each of the clock's windows that
// these times touch.
func TestInstancesApartKeepTheSum(t *testing.T) {
	t.Parallel()
	const instances, burst, outages, tick = 4, 20, 3, 100 * time.Millisecond
	for _, apart := range []time.Duration{0, 100 * time.Millisecond, time.Second, 5 * time.Second} {
		for _, l := range everyAlgorithm(burst, time.Minute) {
			t.Run(fmt.Sprintf("%v/%v", l, apart), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					all := instancesOf(t, instances)
					began, admitted, mixed := time.Now(), int64(0), time.Duration(0)
					for range outages {
						for i, w := range all {
							time.AfterFunc(10*time.Second+time.Duration(i)*apart, func() { w.shared.fails(errRefused) })
							time.AfterFunc(40*time.Second+time.Duration(i)*apart, func() { w.shared.fails(nil) })
						}
						for end := time.Now().Add(80 * time.Second); time.Now().Before(end); time.Sleep(tick) {
							without := 0
							for _, w := range all {
								admitted += w.drain("usr=1", l)
								if w.stats().Open > 0 {
									without++
								}
							}
							if without > 0 && without < instances {
								mixed += tick
							}
						}
					}
					// Windows of the clock that the times touch, at their edges.
					minutes := int64((time.Since(began)+mixed)/time.Minute) + 1
					most := burst*minutes + burst + outages*(burst+instances)
					t.Logf("admitted %d of %d, %v apart", admitted, most, mixed)
					if admitted > most {
						t.Errorf("admitted %d, want at most %d", admitted, most)
					}
				})
			})
		}
	}
}
