// The spool: all decisions of the engine, on disk.

package replay

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// A record is one decision, or what the decision before it was settled by.
type record struct {
	time    int64 // µs since 1970
	key     keyID
	units   int64 // up to maxUnits; negative if they were returned
	settles bool
}

const (
	recordSize = 16
	settlesBit = 1 << 31 // in the units
	returnsBit = 1 << 30
	maxUnits   = returnsBit - 1
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
	var buf [recordSize]byte
	binary.LittleEndian.PutUint64(buf[:], uint64(r.time))
	binary.LittleEndian.PutUint32(buf[8:], uint32(r.key))
	units := uint32(min(max(r.units, -r.units), maxUnits))
	if r.units < 0 {
		units |= returnsBit
	}
	if r.settles {
		units |= settlesBit
	}
	binary.LittleEndian.PutUint32(buf[12:], units)
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
			units := binary.LittleEndian.Uint32(b[12:])
			r := record{
				time: int64(binary.LittleEndian.Uint64(b)), key: keyID(binary.LittleEndian.Uint32(b[8:])),
				units: int64(units & maxUnits), settles: units&settlesBit != 0,
			}
			if units&returnsBit != 0 {
				r.units = -r.units
			}
			if err := do(r); err != nil {
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
