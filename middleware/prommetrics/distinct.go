package prommetrics

import (
	"sync"
	"time"

	"github.com/axiomhq/hyperloglog"
)

const (
	// A distinct keeps four sketches of 20 minutes, so that it knows of the
	// last 60 to 80 minutes.
	epochs = 4
	epoch  = 20 * time.Minute

	// Keys are spread over sketches with a lock each; 1 KB each, whose errors
	// of 3 % cancel out to half of that.
	parts     = 4
	precision = 10
)

// A distinct estimates how many different keys there were. It takes 16 KB.
type distinct struct {
	parts [parts]part

	began time.Time // the newest epoch; the collecting goroutine's own
}

// A part counts the keys whose hashes end in the same bits.
type part struct {
	mu     sync.Mutex // guards sketch
	sketch *hyperloglog.Sketch
	past   [epochs - 1]*hyperloglog.Sketch // the latest first; the collecting goroutine's own

	_ [64]byte // keeps the next part's mu off this cache line
}

func newDistinct(now time.Time) *distinct {
	d := &distinct{began: now}
	for i := range d.parts {
		p := &d.parts[i]
		p.sketch = newSketch()
		for j := range p.past {
			p.past[j] = newSketch()
		}
	}
	return d
}

// newSketch returns one that does not grow, and so never allocates.
func newSketch() *hyperloglog.Sketch {
	s, err := hyperloglog.NewSketch(precision, false)
	if err != nil {
		panic("prommetrics: " + err.Error()) // the precision is a constant
	}
	return s
}

func (d *distinct) add(hash uint32) {
	h := mix(uint64(hash))
	p := &d.parts[h%parts]
	p.mu.Lock()
	p.sketch.InsertHash(h)
	p.mu.Unlock()
}

// mix spreads a hash over 64 bits (the finalizer of SplitMix64): a sketch looks
// at the first ones.
func mix(h uint64) uint64 {
	h += 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// estimate returns how many keys there were, and begins a new epoch if it is
// time: requests do not have to look at the clock. So after an hour without a
// scrape the first one speaks of a longer time.
func (d *distinct) estimate(now time.Time) (n uint64) {
	turns := int(now.Sub(d.began) / epoch)
	d.began = d.began.Add(time.Duration(max(0, turns)) * epoch)
	for i := range d.parts {
		n += d.parts[i].estimate(min(turns, epochs))
	}
	return n
}

func (p *part) estimate(turns int) uint64 {
	p.mu.Lock()
	sum := p.sketch.Clone()
	for range turns {
		copy(p.past[1:], p.past[:])
		p.past[0], p.sketch = p.sketch, newSketch()
	}
	p.mu.Unlock()
	for _, past := range p.past {
		_ = sum.Merge(past) // of the same precision
	}
	return sum.Estimate()
}
