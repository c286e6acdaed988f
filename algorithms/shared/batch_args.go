// Arguments of a script that need no allocation, because a pointer to them
// becomes an any. Go-redis writes the result of MarshalBinary; hooks that trace
// commands show the result of String.

package shared

import "strconv"

// A scriptKey is a stored key.
type scriptKey struct{ text []byte }

// MarshalBinary implements [encoding.BinaryMarshaler].
func (k *scriptKey) MarshalBinary() ([]byte, error) { return k.text, nil }

func (k *scriptKey) String() string { return string(k.text) }

// A scriptInstant is an instant in µs, or 0.
type scriptInstant struct {
	µs   int64
	text [20]byte
}

// MarshalBinary implements [encoding.BinaryMarshaler].
func (i *scriptInstant) MarshalBinary() ([]byte, error) {
	return strconv.AppendInt(i.text[:0], i.µs, 10), nil
}

func (i *scriptInstant) String() string { return strconv.FormatInt(i.µs, 10) }
