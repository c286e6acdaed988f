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

// Hash returns the key's hash. A key is never the policy of the same letters.
func (k *Key) Hash(seed maphash.Seed) uint64 {
	const odd = 0x9e3779b97f4a7c15
	return maphash.String(seed, k.Text) ^ (maphash.String(seed, k.Policy)+uint64(k.Scope.ID))*odd
}

// Clone returns the key without any memory of its caller's.
func (k Key) Clone() Key {
	k.Policy, k.Text = strings.Clone(k.Policy), strings.Clone(k.Text)
	return k
}
