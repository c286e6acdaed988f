// Random takes and returns of a token bucket, against its promise: in every interval the final costs are at most burst +
// rate × time + the units that were taken before the interval and returned in it.

package limitertest

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A booking is a take or a Return in a history of one key.
type booking struct {
	at    int64
	take  int   // its place among the bookings; of a Return, the place of its take
	units int64 // of a take: the units that were not returned; of a Return: the units of the receipt
}

// simulate takes and returns at random, in any order and in parts.
func (w *world) simulate(r source, burst int64) {
	w.Helper()
	l := algorithms.TokenBucket(7, time.Second).WithBurst(burst)
	type open struct {
		check algorithms.Check
		place int
		until int64 // when a part is returned
	}
	var bookings []booking
	var takes []open
	interval := int64(second / 7)
	for range 300 {
		w.sleep(time.Duration(r.Int64N(1+pick(r, 0, 0, interval, 4*interval))) * µs)
		now := w.clock.instant()
		for i := range takes {
			o := &takes[i]
			rest := o.check.Decision.Receipt.Units()
			if rest == 0 || o.until == 0 || o.until > now {
				continue
			}
			part := 1 + r.Int64N(rest)
			o.check, o.until = w.allow(back(o.check, part))[0], 0
			bookings[o.place].units -= part
			bookings = append(bookings, booking{now, o.place, part})
			if r.IntN(2) == 0 {
				o.until = now + r.Int64N(5*interval)
			}
		}
		c := w.allow(w.on("", l, 1+r.Int64N(burst)))[0]
		if !c.Decision.Allowed {
			continue
		}
		next := open{check: c, place: len(bookings)}
		if r.IntN(3) > 0 {
			next.until = now + r.Int64N(pick(r, 2, 2*interval, 20*interval))
		}
		takes = append(takes, next)
		bookings = append(bookings, booking{now, next.place, c.Cost})
	}
	w.within(l, bookings)
}

// within checks every interval that begins at a take and ends at a take.
func (w *world) within(l algorithms.Limit, all []booking) {
	w.Helper()
	for i, first := range all {
		if first.take != i {
			continue
		}
		var final, carried int64
		for j, b := range all[i:] {
			switch {
			case b.take == i+j:
				final += b.units
			case b.take < i:
				carried += b.units
			}
			if over := (final-l.Burst()-carried)*l.Window().Microseconds() - (b.at-first.at)*l.Requests(); over > 0 {
				w.errorf("%v: from %d to %d, %d units count, and %d of earlier takes were returned",
					l, first.at-epoch, b.at-epoch, final, carried)
				return
			}
		}
	}
}
