package fleet

import (
	"runtime"
	"testing"
	"testing/synctest"
)

func TestFleet(t *testing.T) {
	for seed := range uint64(3) {
		runtime.GC()
		runtime.GC()
		synctest.Test(t, func(t *testing.T) {
			p := newPlan(seed)
			r := play(p)
			r.judge(t)
		})
	}
}
