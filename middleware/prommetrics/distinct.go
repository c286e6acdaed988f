package prommetrics

import (
	"sync"
	"time"

	"github.com/axiomhq/hyperloglog"
)

const (
	// A distinct keeps four sketches of 20 minutes each, so it covers the last 60
	// to 80 minutes.
	epochs = 4
	epoch  = 20 * time.Minute

	// Keys are spread over several sketches with a lock each. A sketch takes 1 KB.
	// Its standard error of 3 % halves in the sum of four.
	parts     = 4
	precision = 10
)

// A distinct estimates the number of different keys. It takes 16 KB.
type distinct struct {
	parts [parts]part

	began time.Time // start of the newest epoch; guarded by Metrics.mu
}

// A part counts the keys whose hashes end in the same bits.
type part struct {
	mu     sync.Mutex // guards sketch
	sketch *hyperloglog.Sketch
	past   [epochs - 1]*hyperloglog.Sketch // the latest first; guarded by Metrics.mu

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

// newSketch returns a sketch that never grows, and so never allocates.
func newSketch() *hyperloglog.Sketch {
	s, err := hyperloglog.NewSketch(precision, false)
	if err != nil {
		panic("ratelimit: " + err.Error()) // the precision is a constant
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

// mix spreads a hash over 64 bits (the finalizer of SplitMix64), because a sketch
// reads the first bits.
func mix(h uint64) uint64 {
	h += 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// estimate returns the number of different keys. It also begins new epochs, so
// that requests need not read the clock. After an hour without a scrape, the first
// estimate covers a longer time. It requires Metrics.mu.
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
