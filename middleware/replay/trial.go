// The spool: all decisions of the engine, on disk. Trials decide them again, under other limits.

package replay

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A record is one decision, or what the decision before it was settled by.
type record struct {
	time    int64 // µs since 1970
	key     keyID
	units   int64 // at most maxUnits; negative if they were returned
	settles bool
}

const (
	recordSize = 16
	maxUnits   = math.MaxInt32
)

// A spool is a temporary file of records. Write all, flush out, and then read it from
// any number of goroutines.
type spool struct {
	file *os.File
	out  *bufio.Writer
	n    int64

	named bool // Windows removes no open file
}

// newSpool makes a file in the folder for temporary files. The file loses its name at
// once, so that nothing is left of a replay that is killed.
func newSpool() (*spool, error) {
	f, err := os.CreateTemp("", "replay-*")
	if err != nil {
		return nil, err
	}
	return &spool{file: f, out: bufio.NewWriterSize(f, 1<<20), named: os.Remove(f.Name()) != nil}, nil
}

func (s *spool) close() error {
	err := s.file.Close()
	if s.named {
		err = errors.Join(err, os.Remove(s.file.Name()))
	}
	return err
}

func (s *spool) add(r record) error {
	if r.settles { // no time is negative
		r.time = -r.time
	}
	var buf [recordSize]byte
	binary.LittleEndian.PutUint64(buf[:], uint64(r.time))
	binary.LittleEndian.PutUint32(buf[8:], uint32(r.key))
	binary.LittleEndian.PutUint32(buf[12:], uint32(r.units))
	s.n++
	_, err := s.out.Write(buf[:])
	return err
}

// each passes all records to do, until that returns an error or ctx ends. The writer must be flushed.
func (s *spool) each(ctx context.Context, do func(record) error) error {
	buf := make([]byte, recordSize<<14)
	file := io.NewSectionReader(s.file, 0, s.n*recordSize)
	for {
		n, err := io.ReadFull(file, buf)
		for b := buf[:n]; len(b) >= recordSize; b = b[recordSize:] {
			at, key, units := int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
			if err := do(record{max(at, -at), keyID(key), int64(int32(units)), at < 0}); err != nil {
				return err
			}
		}
		if ends(err) {
			return nil
		}
		if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			return err
		}
	}
}

// A trial decides every record of a spool under other limits, each series alone. If a limit denies nothing
// to a key, a higher one does not either, so trials learn from each other which keys need no decision.
type trial struct {
	most    []int64            // clients to count, by series; nil: count all denied requests
	limits  []algorithms.Limit // by series; the zero Limit leaves a series out
	total   []int64            // denied requests, by series
	clients []int              // denied keys, by series
	denied  []uint32           // denied requests, by key
	passed  []peak             // by series
}

// run runs trials, one on each of two cores: each takes as much memory as the keys that
// it may deny.
func (h *history) run(ctx context.Context, s *spool, trials ...*trial) error {
	errs := make([]error, len(trials))
	var running sync.WaitGroup
	cores := make(chan struct{}, 2)
	for i, t := range trials {
		cores <- struct{}{}
		running.Go(func() {
			defer func() { <-cores }()
			errs[i] = t.run(ctx, h, s)
		})
	}
	running.Wait()
	for i, t := range trials {
		if errs[i] == nil {
			t.learn(h)
		}
	}
	return errors.Join(errs...)
}

func (t *trial) run(ctx context.Context, h *history, s *spool) error {
	t.total, t.clients = make([]int64, len(h.series)), make([]int, len(h.series))
	t.denied, t.passed = make([]uint32, len(h.keys)), make([]peak, len(h.series))
	var now int64
	memory := algorithms.NewMemory(&algorithms.MemoryOptions{
		MaxKeys: math.MaxInt32, Now: func() time.Time { return time.UnixMicro(now) },
	})
	known, all := t.known(h)
	if all {
		for i, series := range h.series {
			t.passed[i] = series.calls
		}
		return nil
	}
	var checks [1]algorithms.Check
	c := &checks[0]
	open := false // whether the last decision can be settled
	return s.each(ctx, func(r record) error {
		if known[r.key] && (r.settles || t.most != nil) {
			return nil
		}
		k := h.keys[r.key]
		if known[r.key] {
			t.passed[k.series].add(r.time)
			return nil
		}
		if t.most != nil && (t.denied[r.key] > 0 || int64(t.clients[k.series]) > t.most[k.series]) {
			open = false
			return nil
		}
		now = r.time
		if r.settles {
			if !open {
				return nil
			}
			if c.Op, c.Cost = algorithms.Force, r.units; r.units < 0 {
				c.Op, c.Cost = algorithms.Return, -r.units
			}
			return memory.Allow(ctx, checks[:])
		}
		*c = algorithms.Check{Policy: h.series[k.series].policy, Key: k.text, Limit: t.limits[k.series], Cost: r.units}
		if err := memory.Allow(ctx, checks[:]); err != nil {
			return err
		}
		open = c.Decision.Allowed && c.Decision.Receipt.Units() > 0
		if c.Decision.Allowed {
			t.passed[k.series].add(now)
		} else {
			t.total[k.series]++
			if t.denied[r.key]++; t.denied[r.key] == 1 {
				t.clients[k.series]++
			}
		}
		return nil
	})
}

// known returns which keys need no decision, and whether none does: the limit denies them
// nothing, or denies them and only clients are counted. Keys that want few units in two
// neighbouring windows are denied nothing; most keys do.
func (t *trial) known(h *history) (known []bool, all bool) {
	known, all = make([]bool, len(h.keys)), true
	for id, k := range h.keys {
		l := t.limits[k.series]
		n := l.Requests()
		known[id] = l == (algorithms.Limit{}) || int64(k.pair) <= min(l.Burst(), n) || k.hi <= n
		if t.most != nil && n <= k.lo && l.Burst() <= burstOf(h.series[k.series].limit, k.lo) && !known[id] {
			known[id] = true
			t.clients[k.series]++
		}
		all = all && known[id]
	}
	return known, all
}

// learn keeps what a trial has found out about keys. A settlement may be larger where the limit is.
func (t *trial) learn(h *history) {
	for id, k := range h.keys {
		s, l := h.series[k.series], t.limits[k.series]
		n := l.Requests()
		switch {
		case l == (algorithms.Limit{}) || s.settles || l.Burst() != burstOf(s.limit, n):
		case t.denied[id] > 0:
			k.lo = max(k.lo, n)
		case t.most == nil || int64(t.clients[k.series]) <= t.most[k.series]:
			if k.lo < n { // else it is known to be denied
				k.hi = min(k.hi, n)
			}
		}
	}
}

// searchable reports whether a trial tells what another number of requests would do.
func (s *series) searchable() bool {
	return s.pair == "" && s.limit.Requests() > 0 && !s.limit.Algorithm().Concurrent()
}
