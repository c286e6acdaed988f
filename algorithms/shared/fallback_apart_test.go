// Instances whose circuits open and close at different times.

package shared

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Four instances lose the primary one after the other, and reach it again one
// after the other. They admit together no more than the sum of the runbook:
//
//	B + R·T/W + j·B + R·M/W + N
//
// in a time T, in which the primary came back to instances at different times
// in j outages, and in which for a time M some instances had it and others had
// not. A fixed window admits R in each of the clock's windows that these times
// touch.
func TestInstancesApartKeepTheSum(t *testing.T) {
	t.Parallel()
	const instances, burst, outages, tick = 4, 20, 3, 100 * time.Millisecond
	for _, apart := range []time.Duration{0, 100 * time.Millisecond, time.Second, 5 * time.Second} {
		for _, l := range everyAlgorithm(burst, time.Minute) {
			t.Run(fmt.Sprintf("%v/%v", l, apart), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := newStateStore()
					all := make([]*world, instances)
					for i := range all {
						all[i] = &world{t: t, shared: &fakePrimary{store: over(store)}, memory: newMemory()}
						all[i].start(all[i].shared, &Options{Instances: instances})
					}
					time.Sleep(7 * time.Second)
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
								if w.stats().Open {
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
					most := burst*minutes + (1+outages)*burst + instances
					t.Logf("admitted %d of %d, %v apart", admitted, most, mixed)
					if admitted > most {
						t.Errorf("admitted %d, want at most %d", admitted, most)
					}
				})
			})
		}
	}
}
