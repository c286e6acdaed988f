// The spool: all decisions of the engine, on disk.

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
