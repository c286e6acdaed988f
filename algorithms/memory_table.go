// The hash table of a shard: linear hashing (W. Litwin, "Linear hashing: a new
// tool for file and table addressing", 1980).
//
// Why not a Go map: a map of a million keys takes 149 bytes per key. This table
// takes 111 bytes, and grows by one chain at a time.
//
// How a hash selects one of n chains: let 2^b be the smallest power of two that
// is at least n. The lowest b bits of the hash give a number c. If chain c
// exists (c < n), the hash selects it. Otherwise it selects c without bit b-1,
// which always exists.
//
// Example: n = 5, so b = 3. The hash ...110 gives c = 6, which does not exist
// yet, and selects chain 010 = 2. The hash ...100 gives c = 4, and selects
// chain 4. When chain 5 = 101 is added, its records can come only from chain
// 001 = 1, because every hash that ends in 101 selected chain 1 before. So
// split moves records from one chain only.
//
// Invariant: every record that is in use is in the chain that chainOf gives for
// its hash and the present n. split is the only function that changes n, and
// restores the invariant before it returns.

package algorithms

import (
	"crypto/sha256"
	"hash/maphash"
	"math"
	"math/bits"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// Records are the keys of a shard. Each record is in the chain that its hash
// selects, or is free. Records never move, so pointers to them stay valid. The
// zero value is empty.
type records struct {
	chains []link
	blocks [][]record // blockSize each; pointers to arrays would cost a read of each array, to check for nil
	made   int        // all records, free ones included
	free   link
	keys   int // records in use
}

// A record is the state of one key. It is free if its name is empty, and then never expires.
type record struct {
	hash uint32
	next link     // in its chain, or in the list of free records
	size uint16   // of the name
	high uint16   // the units above 32 bits: no state holds more than step.MaxUnits
	name [44]byte // longer names are in more; with 44 bytes a record has 96

	n, f     uint32
	t        int64
	fullAt   int64 // µs: the limit is full again, so the key may be forgotten
	more     *more // nil for most
	deniedAt int64 // µs; last, because it is read least
}

// More is the part that only some records have.
type more struct {
	name  []byte
	state *step.More
}

// A link leads to a record: the first is 1, and 0 is none.
type link uint32

// blockSize is how many records one allocation makes.
const blockSize = 64

func (rs *records) at(l link) *record {
	return &rs.blocks[(l-1)/blockSize][(l-1)%blockSize]
}

// find returns the record of a name, nil if there is none.
func (rs *records) find(hash uint32, n *name) *record {
	if len(rs.chains) == 0 {
		return nil
	}
	for l := *rs.chain(hash); l != 0; {
		r := rs.at(l)
		if r.hash == hash && n.is(r.piece()) {
			return r
		}
		l = r.next
	}
	return nil
}

// add returns a record for a name that has none. It makes one if none is free.
func (rs *records) add(hash uint32, n *name) *record {
	l := rs.free
	if l == 0 {
		l = rs.make()
	}
	r, head := rs.at(l), rs.chain(hash)
	rs.free = r.next
	*r = record{hash: hash, next: *head, size: uint16(n.len())}
	if n.len() <= len(r.name) {
		n.appendTo(r.name[:0])
	} else {
		r.more = n.apart()
	}
	*head = l
	rs.keys++
	return r
}

// make returns a new record, which is free.
func (rs *records) make() link {
	if rs.made%blockSize == 0 {
		rs.blocks = append(rs.blocks, make([]record, blockSize))
	}
	rs.made++
	rs.split()
	rs.split()
	return link(rs.made)
}

// remove frees a record.
func (rs *records) remove(r *record) {
	at := rs.chain(r.hash)
	for rs.at(*at) != r {
		at = &rs.at(*at).next
	}
	l := *at
	*at = r.next
	*r = record{next: rs.free, fullAt: math.MaxInt64}
	rs.free = l
	rs.keys--
}

func (rs *records) chain(hash uint32) *link {
	return &rs.chains[chainOf(hash, len(rs.chains))]
}

// chainOf returns which of n chains a hash selects.
func chainOf(hash uint32, n int) int {
	mask := uint32(1)<<bits.Len32(uint32(n-1)) - 1
	c := int(hash & mask)
	// No branch: the processor could not predict it. beyond is -1 if there is no
	// chain c, and otherwise 0.
	beyond := (n - 1 - c) >> (bits.UintSize - 1)
	return c - beyond&int(mask+1)>>1
}

// split adds a chain, and moves the records there that select it now.
func (rs *records) split() {
	n := len(rs.chains)
	rs.chains = append(rs.chains, 0)
	if n == 0 {
		return
	}
	from, to := &rs.chains[chainOf(uint32(n), n)], &rs.chains[n]
	for *from != 0 {
		r := rs.at(*from)
		if chainOf(r.hash, n+1) != n {
			from = &r.next
			continue
		}
		l := *from
		*from = r.next
		r.next, *to = *to, l
	}
}

// piece returns the name in one piece.
func (r *record) piece() []byte {
	if int(r.size) > len(r.name) {
		return r.more.name
	}
	return r.name[:r.size]
}

func (r *record) state() step.State {
	s := step.State{T: r.t, N: int64(r.high)<<32 | int64(r.n), F: int64(r.f)}
	if m := r.more; m != nil {
		s.More = m.state
	}
	return s
}

func (r *record) put(s step.State, fullAt int64) {
	r.t, r.n, r.high, r.f, r.fullAt = s.T, uint32(s.N), uint16(s.N>>32), uint32(s.F), fullAt
	if r.more == nil {
		if s.More == nil {
			return
		}
		r.more = &more{}
	}
	r.more.state = s.More
}

// A name is a key as records hold it. Its parts stay in the caller's memory,
// because joining them would cost more than the look-up.
type name struct {
	policy, text string
	kind         byte // of the row, and whether text is a digest
}

const (
	// maxName is the longest text, in bytes, that is kept as it is. Clients may
	// choose keys, so a bound on the number of keys alone would not bound
	// memory.
	maxName = 128

	// digested marks the kind of a name whose text is the digest of a long key.
	// Without it, a client could make a short key that equals a digest.
	digested = 1 << 7
)

// set makes n the name of a key, in place, because a name is too large for registers.
func (n *name) set(policy, text string, row byte) {
	n.policy, n.text, n.kind = policy, text, row
	if len(text) > maxName {
		n.digest()
	}
}

func (n *name) digest() {
	sum := sha256.Sum256([]byte(n.text))
	n.text, n.kind = string(sum[:]), n.kind|digested
}

// hash hashes the text, which clients choose. Of the policy, which they do not choose, it mixes in the length and the
// first, middle and last eight bytes: hashing all of it would cost every check 9 ns. Policies of more than 24 bytes that
// agree in these have their records for one text in one chain.
func (n *name) hash(seed maphash.Seed) uint64 {
	const odd, other = 0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f
	p := len(n.policy)
	head, tail := uint64(p)<<8|uint64(n.kind), uint64(0)
	if p >= 8 {
		head, tail = head^eight(n.policy)^eight(n.policy[p/2-4:])*odd, eight(n.policy[p-8:])
	} else {
		for i := range p {
			tail = tail<<8 | uint64(n.policy[i])
		}
	}
	high, low := bits.Mul64(head^odd, tail^other)
	return maphash.String(seed, n.text) ^ high ^ low
}

// eight returns the first eight bytes of s.
func eight(s string) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// apart returns a name that is too long for a record. Most such names share one allocation with their more, so that a
// look-up waits for one cache miss less.
func (n *name) apart() *more {
	const room = 64
	if n.len() > room {
		return &more{name: n.appendTo(nil)}
	}
	m := &struct {
		more
		room [room]byte
	}{}
	m.name = n.appendTo(m.room[:0])
	return &m.more
}

// appendTo appends the name in one piece. A kind is never a byte of a policy's
// name, so different names stay different.
func (n *name) appendTo(dst []byte) []byte {
	dst = append(dst, n.policy...)
	dst = append(dst, n.kind)
	return append(dst, n.text...)
}

// len returns the length of the name in one piece.
func (n *name) len() int { return len(n.policy) + 1 + len(n.text) }

// is reports whether piece is the result of appendTo.
func (n *name) is(piece []byte) bool {
	p := len(n.policy)
	return len(piece) == n.len() && string(piece[p+1:]) == n.text &&
		piece[p] == n.kind && string(piece[:p]) == n.policy
}
