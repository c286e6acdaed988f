// Tests of slots, against the formula in rational numbers.

package comeback

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/draw"
)

// lineMax is the longest line in µs.
const lineMax = int64(maxLine / time.Microsecond)

// A slotTest is a denial whose clients get slots.
type slotTest struct {
	Denial
	instances int64
}

func denied(client string, l algorithms.Limit, wait int64) *slotTest {
	return &slotTest{Denial{Policy: "p", Key: "const=all", Client: client, Shared: true, Limit: l, Cost: 1, Wait: time.Duration(wait) * time.Microsecond}, 1}
}

// wait returns the honest wait in µs.
func (d *slotTest) wait() int64 { return d.Wait.Microseconds() }

// of returns the µs until the client's slot.
func (d *slotTest) of(s *slots, now int64) (int64, bool) {
	slot, ok := s.next(&place{now: now, honest: now + d.wait(), cost: max(d.Cost, 1), limit: d.Limit, instances: d.instances}, &d.Denial)
	return slot - now, ok
}

// A lineModel is the formula: line = max(line, now + wait) + units/rate.
type lineModel struct {
	line  *big.Rat
	slots map[string]int64
}

// slot returns the slot of a denial, rounded up, or 0 if there is none.
func (m *lineModel) slot(d *slotTest, now int64) int64 {
	if s := m.slots[d.Client]; s > now {
		return s
	}
	honest := new(big.Rat).SetInt64(now + d.wait())
	if m.line.Cmp(honest) < 0 {
		m.line.Set(honest)
	}
	end := new(big.Rat).SetInt64(now + d.wait() + lineMax)
	moved := new(big.Rat).Add(m.line, big.NewRat(d.Cost*d.Limit.Window().Microseconds(), d.Limit.Requests()))
	if moved.Cmp(end) > 0 {
		return 0
	}
	m.line.Set(moved)
	up := new(big.Int).Add(moved.Num(), new(big.Int).Sub(moved.Denom(), big.NewInt(1)))
	m.slots[d.Client] = up.Div(up, moved.Denom()).Int64()
	return m.slots[d.Client]
}

// TestSlotsFollowTheFormula: slots are the formula's to the µs, never before the honest wait, and stay until they have
// passed.
func TestSlotsFollowTheFormula(t *testing.T) {
	t.Parallel()
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		limit := algorithms.TokenBucket(v.Int64(1, 1000), time.Duration(v.Int64(1, 1e8))*time.Microsecond)
		if limit.Validate() != nil {
			return
		}
		s, m, now := new(slots), lineModel{new(big.Rat), map[string]int64{}}, int64(0)
		for range v.Int(1, 60) {
			now += v.Int64(0, 3_000_000)
			d := denied(fmt.Sprint(v.Int(0, 9)), limit, v.Int64(1, 5_000_000))
			d.Cost = v.Int64(0, 3)
			model := *d
			model.Cost = max(d.Cost, 1)
			want := m.slot(&model, now)
			got, ok := d.of(s, now)
			switch {
			case want == 0 && ok && got < d.wait()+lineMax:
				t.Fatalf("%v at %d: got %d, want no place in the line", limit, now, got)
			case want == 0:
				return // the model ends at the end of the line
			case !ok || got != max(want-now, d.wait()):
				t.Fatalf("%v at %d: got a wait of %d, %t, want %d, at least %d", limit, now, got, ok, want-now, d.wait())
			}
		}
	})
}

// TestDistinctClientsAreApart: clients of one line return 1/rate apart.
func TestDistinctClientsAreApart(t *testing.T) {
	t.Parallel()
	for _, limit := range []algorithms.Limit{
		algorithms.TokenBucket(10, time.Second), algorithms.FixedWindow(7, time.Minute), algorithms.SlidingWindowLog(3, time.Second),
	} {
		s, apart := new(slots), limit.Window().Microseconds()/limit.Requests()
		var all []int64
		for i := range 20 {
			got, ok := denied(fmt.Sprint(i), limit, 1000).of(s, 0)
			if !ok {
				t.Fatalf("%v: client %d has no slot", limit, i)
			}
			all = append(all, got)
		}
		for i := range all[1:] {
			if got := all[i+1] - all[i]; got < apart || got > apart+1 {
				t.Errorf("%v: got %d µs between clients %d and %d, want %d", limit, got, i, i+1, apart)
			}
		}
	}
}

// TestPollerMovesNoOne: a client that asks all the time changes no other client's slot, and sees its own come nearer.
func TestPollerMovesNoOne(t *testing.T) {
	t.Parallel()
	limit := algorithms.TokenBucket(10, time.Second)
	calm, polled := new(slots), new(slots)
	first, _ := denied("poller", limit, 50_000).of(polled, 0)
	denied("poller", limit, 50_000).of(calm, 0)
	for now := range int64(100) {
		for range 50 {
			if got, _ := denied("poller", limit, 50).of(polled, now); got != first-now {
				t.Fatalf("at %d the poller got %d, want %d", now, got, first-now)
			}
		}
		client := fmt.Sprint(now)
		want, _ := denied(client, limit, 50).of(calm, now)
		if got, _ := denied(client, limit, 50).of(polled, now); got != want {
			t.Fatalf("at %d client %s got %d beside a poller, want %d", now, client, got, want)
		}
	}
}

// TestHonestWaitBeatsSlot: a slot that is earlier than the honest wait is not sent.
func TestHonestWaitBeatsSlot(t *testing.T) {
	t.Parallel()
	s, limit := new(slots), algorithms.TokenBucket(10, time.Second)
	denied("c", limit, 1000).of(s, 0)
	if got, ok := denied("c", limit, 5_000_000).of(s, 500); !ok || got != 5_000_000 {
		t.Errorf("got %d, %t, want the honest wait of 5 s", got, ok)
	}
}

// TestSlotsAreBounded: further clients get none, no slot is evicted, and all room is free again afterwards.
func TestSlotsAreBounded(t *testing.T) {
	t.Parallel()
	s, limit := new(slots), algorithms.TokenBucket(1_000, time.Second)
	kept := make([]int64, maxSlots)
	for i := range maxSlots {
		kept[i], _ = denied(fmt.Sprint(i), limit, 1000).of(s, 0)
	}
	for i := range 100 {
		if got, ok := denied(fmt.Sprint("late", i), limit, 1000).of(s, 1); ok {
			t.Fatalf("got a slot in %d µs, want no room", got)
		}
		if got, ok := denied(fmt.Sprint(i), limit, 1000).of(s, 1); !ok || got != kept[i]-1 {
			t.Fatalf("client %d: got %d, %t, want its own slot in %d", i, got, ok, kept[i]-1)
		}
	}
	if len(s.taken) != maxSlots || len(s.lines) != 1 {
		t.Errorf("got %d slots in %d lines, want %d in 1", len(s.taken), len(s.lines), maxSlots)
	}
	end := slices.Max(kept)
	if _, ok := denied("after", limit, 1000).of(s, end+1); !ok || len(s.taken) != 1 {
		t.Errorf("got %t and %d slots afterwards, want 1", ok, len(s.taken))
	}
	if s.sweep(end + 10_000_000); s.taken != nil || s.lines != nil {
		t.Errorf("got %d slots and %d lines in the end, want none", len(s.taken), len(s.lines))
	}
}

// TestInstancesInterleave: N instances fill the same places that one would, and each keeps its own clients apart.
func TestInstancesInterleave(t *testing.T) {
	t.Parallel()
	const clients = 200
	limit := algorithms.TokenBucket(10, time.Second)
	for _, n := range []int64{1, 2, 5} {
		places := make(map[int64]int)
		for instance := range n {
			s, last := new(slots), int64(0)
			for i := range clients / n {
				d := denied(fmt.Sprint(instance, "-", i), limit, 50_000)
				d.instances = n
				got, ok := d.of(s, 0)
				if !ok || got < 150_000 || got > 50_000+clients*100_000 {
					t.Fatalf("%d instances: got %d, %t, want it within %d places", n, got, ok, clients)
				}
				if got-last < 100_000 {
					t.Fatalf("%d instances: got %d µs after %d, want 1/rate between them", n, got, last)
				}
				last = got
				places[(got-50_001)/100_000]++
			}
		}
		most := 0
		for _, clients := range places {
			most = max(most, clients)
		}
		// Each place is hit by one client in the mean; by chance 1/e of them stay empty.
		if len(places) < clients*55/100 || most > 5 {
			t.Errorf("%d instances: got %d of %d places, %d clients in one", n, len(places), clients, most)
		}
	}
}

// TestLineIsBounded: clients whom a line cannot hold return after it, spread, and at most two lines late.
func TestLineIsBounded(t *testing.T) {
	t.Parallel()
	s, limit, wait := new(slots), algorithms.TokenBucket(10, time.Second), int64(100_000)
	places, after := 0, map[int64]int{}
	for i := range 10_000 {
		switch got, ok := denied(fmt.Sprint(i), limit, wait).of(s, 0); {
		case !ok || got > wait+2*lineMax:
			t.Fatalf("client %d: got %d, %t, want at most two lines", i, got, ok)
		case got <= wait+lineMax:
			places++
		default:
			after[got/1_000_000]++
		}
	}
	if want := int(maxLine / (100 * time.Millisecond)); places != want {
		t.Errorf("got %d places in the line, want %d", places, want)
	}
	for second, clients := range after {
		if clients > 80 { // 32 in the mean
			t.Errorf("got %d clients in second %d", clients, second)
		}
	}
	if got, ok := denied("c", algorithms.TokenBucket(1, maxLine+time.Microsecond), wait).of(new(slots), 0); ok {
		t.Errorf("got a slot in %d of a limit that is too slow", got)
	}
}

// TestPlacesOfManyInstances: the places of all instances together may exceed the line. Clients whose own places are in
// the line have them, and no two of one instance are closer than 1/rate.
func TestPlacesOfManyInstances(t *testing.T) {
	t.Parallel()
	limit, wait, apart := algorithms.TokenBucket(2, time.Minute), int64(1_000_000), int64(30_000_000)
	const instances = 10 // 300 s, and the line is of 240 s
	inLine := 0
	for instance := range 100 {
		s, last := new(slots), int64(0)
		for i := range 5 {
			d := denied(fmt.Sprint(instance, "-", i), limit, wait)
			d.instances = instances
			got, ok := d.of(s, 0)
			if !ok || got < wait+apart || got > wait+2*lineMax {
				t.Fatalf("got %d, %t, want it within two lines", got, ok)
			}
			if got > wait+lineMax {
				continue
			}
			if inLine++; last > 0 && got-last < apart {
				t.Errorf("got %d µs after %d, want 1/rate between them", got, last)
			}
			last = got
		}
		d := denied("later", limit, wait) // the line goes on
		d.instances = instances
		if got, ok := d.of(s, 10*lineMax); !ok || got > wait+2*lineMax {
			t.Errorf("got %d, %t ten lines later", got, ok)
		}
	}
	// The first client of an instance has one of ten places. Eight are in the line. If it has none, the next tries.
	if inLine < 70 {
		t.Errorf("got %d slots in the lines of 100 instances, want nearly all to have one", inLine)
	}
}

// TestExtremeSlots: no limit that is valid overflows.
func TestExtremeSlots(t *testing.T) {
	t.Parallel()
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		limit := algorithms.TokenBucket(v.Int64(1, 1e9), time.Duration(v.Int64(1, 407*86_400*1e6))*time.Microsecond)
		if limit.Validate() != nil {
			return
		}
		s := new(slots)
		for i := range 5 {
			d := denied(fmt.Sprint(i), limit, v.Int64(0, 814*86_400*1e6))
			d.Cost, d.instances = v.Int64(0, 1e9), v.Int64(1, 100_000)
			now := v.Int64(0, 10*365*86_400*1e6)
			if got, ok := d.of(s, now); ok && (got < d.wait() || got > 814*86_400*1e6+2*lineMax+11*365*86_400*1e6) {
				t.Fatalf("got %d, want at least %d", got, d.wait())
			}
		}
	})
}

// TestChangedLimitKeepsTheLine: a line goes on under another rate.
func TestChangedLimitKeepsTheLine(t *testing.T) {
	t.Parallel()
	s := new(slots)
	denied("a", algorithms.TokenBucket(3, time.Second), 0).of(s, 0) // 333 333 1/3
	if got, _ := denied("b", algorithms.TokenBucket(1, time.Second), 0).of(s, 0); got != 1_333_334 {
		t.Errorf("got %d, want 1 s after the line, rounded up", got)
	}
}
