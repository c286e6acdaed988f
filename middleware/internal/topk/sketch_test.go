package topk

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/draw"
)

// TestSketch: counts are too high by their errors at most, and no key with more than a 128th is missing.
func TestSketch(t *testing.T) {
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		var tl Tally
		exact := make(map[uint64]uint64)
		random := rand.New(rand.NewPCG(v.Uint64(), 0))
		keys, adds := v.Int(1, 2000), v.Int(1, 5000)
		turn := v.Int(0, adds)
		for i := range adds {
			now := time.Second
			if i >= turn {
				now += generation
			}
			// The square of a uniform number: few keys are many.
			hash := uint64(float64(keys) * random.Float64() * random.Float64())
			exact[hash]++
			tl.turn(now)
			tl.sketches[0].add(hash, fmt.Sprint("usr=", hash), now)
		}
		top, total := tl.Top(time.Second + generation)
		if total != uint64(adds) {
			t.Fatalf("got %d adds, want %d", total, adds)
		}
		found := make(map[uint64]bool)
		for i, e := range top {
			var hash uint64
			if _, err := fmt.Sscanf(e.Key, "usr=%d", &hash); err != nil || found[hash] {
				t.Fatalf("got key %q of %d, again: %v", e.Key, hash, found[hash])
			}
			found[hash] = true
			if n := exact[hash]; n > e.Count || n < e.Count-e.Error {
				t.Fatalf("%s: got %d with an error of %d, want %d within it", e.Key, e.Count, e.Error, n)
			}
			if i > 0 && top[i-1].Count-top[i-1].Error < e.Count-e.Error {
				t.Fatalf("%d is not in order", i)
			}
		}
		for hash, n := range exact {
			if n*sketchSlots > total && !found[hash] {
				t.Fatalf("%d is missing, with %d of %d adds", hash, n, total)
			}
		}
	})
}

// TestSketchForgets: after two generations nothing is left, and of the first the second knows.
func TestSketchForgets(t *testing.T) {
	var d Tally
	d.Add(1, "usr=1", nil, time.Minute)
	for _, tt := range []struct {
		now  time.Duration
		want int
	}{{generation - 1, 1}, {generation, 1}, {2*generation - 1, 1}, {2 * generation, 0}} {
		if top, total := d.Top(tt.now); len(top) != tt.want || total != uint64(tt.want) {
			t.Errorf("after %v: got %d keys and %d denials, want %d", tt.now, len(top), total, tt.want)
		}
	}
	d.Add(1, "usr=1", nil, 2*generation)
	if top, _ := d.Top(10 * generation); len(top) != 0 {
		t.Errorf("got %d keys after a long silence, want none", len(top))
	}
}

// TestFirst: First is the first time of a key that has never been away for an hour. Its note is the last.
func TestFirst(t *testing.T) {
	for _, tt := range []struct{ pause, want time.Duration }{
		{time.Minute, time.Minute}, {generation, time.Minute}, {3 * generation, time.Minute},
		{59 * time.Minute, time.Minute}, {time.Hour, time.Hour + time.Minute}, {3 * time.Hour, 3*time.Hour + time.Minute},
	} {
		var d Tally
		d.Add(1, "usr=1", &Note{Tier: "free"}, time.Minute)
		d.Add(2, "usr=2", nil, time.Minute+tt.pause/2) // turns a generation
		d.Add(1, "usr=1", &Note{Tier: "pro"}, time.Minute+tt.pause)
		top, _ := d.Top(time.Minute + tt.pause)
		i := slices.IndexFunc(top, func(e Entry) bool { return e.Key == "usr=1" })
		if e := top[i]; e.First != tt.want || e.Last != time.Minute+tt.pause || e.Note.Tier != "pro" {
			t.Errorf("after a pause of %v: got %+v, want the first at %v, and the last note", tt.pause, e, tt.want)
		}
	}
}

// TestSketchIsSmall: any number of keys takes the memory of a few.
func TestSketchIsSmall(t *testing.T) {
	flood := func(d *Tally, keys int) {
		key := make([]byte, 128)
		for i := range keys {
			binary.BigEndian.PutUint64(key, uint64(i))
			d.Add(uint64(i)*0x9e3779b97f4a7c15, string(key), nil, time.Duration(i)*time.Millisecond)
		}
	}
	settle := func(m *runtime.MemStats) {
		runtime.GC()
		runtime.GC() // of what pools held
		runtime.ReadMemStats(m)
	}
	var before, after runtime.MemStats
	settle(&before)
	d := new(Tally)
	flood(d, 500_000) // and many generations
	settle(&after)
	if got := int64(after.HeapAlloc) - int64(before.HeapAlloc); got > 100<<10 {
		t.Errorf("got %d bytes after so many keys, want at most 100 KB", got)
	}
	t.Logf("%d bytes", int64(after.HeapAlloc)-int64(before.HeapAlloc))
	runtime.KeepAlive(d)
}

func BenchmarkSketch(b *testing.B) {
	b.Run("one", func(b *testing.B) {
		var d Tally
		b.ReportAllocs()
		for b.Loop() {
			d.Add(1, "ip=192.0.2.1", nil, 0)
		}
	})
	b.Run("random", func(b *testing.B) { // -benchtime 10000000x: of the memory, nothing is left
		var d Tally
		var i uint64
		b.ReportAllocs()
		for b.Loop() {
			i += 0x9e3779b97f4a7c15
			d.Add(i, "ip=192.0.2.1", nil, 0)
		}
	})
}
