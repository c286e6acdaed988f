// Random takes and returns of a token bucket, against the promise of every bucket: no interval sees more than burst +
// rate × time of the units that were not returned.

package limitertest

import (
	"math/big"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// simulate takes and returns at random. Afterwards it counts the units that were not returned, at the instants of
// their takes, in a bucket of exact integers.
func (w *world) simulate(r source, burst int64) {
	w.Helper()
	l := algorithms.TokenBucket(7, time.Second).WithBurst(burst)
	type taken struct {
		check algorithms.Check
		at    int64
		units int64 // that count
		until int64 // when the rest is returned
	}
	var all []taken
	interval := int64(second / 7)
	for range 300 {
		w.sleep(time.Duration(r.Int64N(1+pick(r, 0, 0, interval, 4*interval))) * µs)
		for i := range all {
			if c := &all[i]; c.until > 0 && c.until <= w.clock.instant() {
				part := 1 + r.Int64N(c.check.Decision.Receipt.Units())
				c.check = w.allow(back(c.check, part))[0]
				c.units -= part
				c.until = 0
				if c.units > 0 && r.IntN(2) == 0 {
					c.until = w.clock.instant() + r.Int64N(5*interval)
				}
			}
		}
		c := w.allow(w.on("", l, 1+r.Int64N(burst)))[0]
		if c.Decision.Allowed {
			next := taken{check: c, at: w.clock.instant(), units: c.Cost}
			if r.IntN(3) > 0 {
				next.until = next.at + r.Int64N(pick(r, 2, 2*interval, 20*interval))
			}
			all = append(all, next)
		}
	}
	counted := make([]admission, len(all))
	for i, c := range all {
		counted[i] = admission{c.at, c.units}
	}
	w.within(l, counted)
}

// within wants that the units that count never exceed burst + rate × time, in any interval. That is the case
// exactly if a bucket that receives them never overflows.
func (w *world) within(l algorithms.Limit, counted []admission) {
	w.Helper()
	rate, window := big.NewInt(l.Requests()), big.NewInt(l.Window().Microseconds())
	level, last := new(big.Int), int64(epoch) // in units of 1/window
	full := new(big.Int).Mul(big.NewInt(l.Burst()), window)
	for _, c := range counted {
		level.Sub(level, new(big.Int).Mul(big.NewInt(c.at-last), rate))
		if last = c.at; level.Sign() < 0 {
			level.SetInt64(0)
		}
		level.Add(level, new(big.Int).Mul(big.NewInt(c.units), window))
		if level.Cmp(full) > 0 {
			over, _ := new(big.Rat).SetFrac(new(big.Int).Sub(level, full), window).Float64()
			w.errorf("%v: at %d more counted than burst + rate × time, by %.3f units", l, c.at-epoch, over)
			return
		}
	}
}
