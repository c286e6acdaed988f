package algorithms

import (
	"crypto/sha256"
	"hash/maphash"
)

// A name is what a Memory tells keys apart by. Its parts stay where the caller
// has them: to put them together would cost more than to look the name up.
type name struct {
	algo   Algorithm
	policy string
	key    string // or its digest, if it is long
}

// digested marks the algorithm of a name whose key is a digest: a short key
// must not be made to equal one.
const digested = 1 << 7

func nameOf(c *Check) name {
	if len(c.Key) > maxPart {
		return longName(c)
	}
	return name{c.Limit.scope(), c.Policy, c.Key}
}

func longName(c *Check) name {
	sum := sha256.Sum256([]byte(c.Key))
	return name{c.Limit.scope() | digested, c.Policy, string(sum[:])}
}

func (n name) hash(seed maphash.Seed) uint64 {
	const odd = 0x9e3779b97f4a7c15 // a key is not the policy of the same letters
	return maphash.String(seed, n.key) ^ (maphash.String(seed, n.policy)+uint64(n.algo))*odd
}

// appendTo appends the name in one piece. As no policy has a byte that is an
// algorithm, no two names look alike.
func (n name) appendTo(dst []byte) []byte {
	dst = append(dst, n.policy...)
	dst = append(dst, byte(n.algo))
	return append(dst, n.key...)
}

// len returns the length of the name in one piece.
func (n name) len() int { return len(n.policy) + 1 + len(n.key) }

// is reports whether piece is what appendTo appends.
func (n name) is(piece []byte) bool {
	p := len(n.policy)
	return len(piece) == n.len() && string(piece[p+1:]) == n.key &&
		Algorithm(piece[p]) == n.algo && string(piece[:p]) == n.policy
}
