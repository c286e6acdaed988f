package recent

import (
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// ticks are those of Minutes in tests.
var ticks = []time.Duration{time.Second, 5 * time.Second}

// TestMinute: the counts are the events since the start of a tick a minute ago, wherever the calls lie.
func TestMinute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type event struct {
			at   time.Duration
			kind int
		}
		var all []event
		now := time.Duration(rapid.IntRange(0, 1000).Draw(t, "start")) * time.Second
		tick := rapid.SampledFrom(ticks).Draw(t, "tick")
		m, made := NewMinute(3, tick, now), now
		for range rapid.IntRange(0, 50).Draw(t, "steps") {
			now += time.Duration(rapid.SampledFrom([]int{0, 1, 3, 5, 20, 59, 61, 300}).Draw(t, "pause")) * time.Second
			if rapid.Bool().Draw(t, "look") {
				got, span := m.Last(now)
				if now > time.Minute && (span < time.Minute || span >= time.Minute+tick) || span > now {
					t.Fatalf("at %v, made at %v: the last minute is %v long", now, made, span)
				}
				want := make([]uint32, 3)
				for _, e := range all {
					if e.at >= now-span {
						want[e.kind]++
					}
				}
				if !slices.Equal(got, want) {
					t.Fatalf("at %v: got %v, want %v", now, got, want)
				}
			}
			e := event{now, rapid.IntRange(0, 2).Draw(t, "kind")}
			m.Add(e.kind, e.at)
			all = append(all, e)
		}
	})
}

// TestMinuteBackwards: a goroutine that read its clock before others turned does not turn back.
func TestMinuteBackwards(t *testing.T) {
	m := NewMinute(1, 5*time.Second, 0)
	m.Add(0, 70*time.Second)
	m.Last(66 * time.Second)
	m.Add(0, 9*time.Second)
	m.Add(0, 70*time.Second)
	if got, _ := m.Last(130 * time.Second); got[0] != 3 {
		t.Errorf("got %d in the last minute, want 3", got[0])
	}
}

// TestMinuteConcurrently: no event is lost while many goroutines add and turn.
func TestMinuteConcurrently(t *testing.T) {
	const goroutines, each = 8, 10_000
	m := NewMinute(1, 5*time.Second, 0)
	var adding sync.WaitGroup
	for range goroutines {
		adding.Go(func() {
			for i := range each {
				m.Add(0, time.Duration(i)*5*time.Millisecond)
			}
		})
	}
	adding.Wait()
	if got, _ := m.Last(each * 5 * time.Millisecond); got[0] != goroutines*each {
		t.Errorf("got %d, want %d", got[0], goroutines*each)
	}
}

func TestAddDoesNotAllocate(t *testing.T) {
	m, now := NewMinute(2, 5*time.Second, 0), time.Duration(0)
	if got := testing.AllocsPerRun(1000, func() {
		now += time.Second
		m.Add(1, now)
	}); got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
}

// TestTicks: the ticks of a minute hold its events, each in its own tick, oldest first.
func TestTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Duration(rapid.IntRange(0, 300).Draw(t, "start")) * time.Second
		tick := rapid.SampledFrom(ticks).Draw(t, "tick")
		m, all := NewMinute(3, tick, now), make(map[int64]uint32)
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			now += time.Duration(rapid.IntRange(0, 9).Draw(t, "pause")) * time.Second
			kind := rapid.IntRange(0, 2).Draw(t, "kind")
			m.Add(kind, now)
			if kind < 2 {
				all[int64(now/tick)]++
			}
		}
		now += time.Duration(rapid.IntRange(0, 70).Draw(t, "rest")) * time.Second
		var want []uint32
		for i := max(0, int64(now/tick)-int64(time.Minute/tick)); i <= int64(now/tick); i++ {
			want = append(want, all[i])
		}
		if got := m.Ticks(now, 0, 1); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}
