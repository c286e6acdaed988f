// The identity of a key: one type for every layer and every store.

package step

import (
	"hash/maphash"
	"strings"
)

// A Key identifies a state: two checks share a state if and only if their keys
// are equal.
type Key struct {
	Policy string
	Text   string
	Scope  *Row
}

// Hash returns the hash of the parts of a key. Moving a byte from one part to
// another changes the hash.
func Hash(seed maphash.Seed, policy, text string, kind byte) uint64 {
	const odd = 0x9e3779b97f4a7c15
	return maphash.String(seed, text) ^ (maphash.String(seed, policy)+uint64(kind))*odd
}

// Clone returns the key without references to its caller's memory.
func (k Key) Clone() Key {
	k.Policy, k.Text = strings.Clone(k.Policy), strings.Clone(k.Text)
	return k
}
