package algorithms

import "math/bits"

// Records are a hash table of a shard's keys. Each record is in the chain that
// its hash selects, or is free. They never move, so that they can be pointed
// at and sampled; and there are two more chains with each new one (W. Litwin,
// "Linear hashing", 1980), so that no call waits while a table is doubled.
//
// The zero value is empty.
type records struct {
	chains []link
	blocks []*[blockSize]record
	made   int // all records, also those that are free
	free   link
	keys   int // records that are not free
}

// A record is the state of one key. It is free if its name is empty.
type record struct {
	hash uint32
	next link     // in its chain, or of those that are free
	size uint16   // of the name
	name [46]byte // unless it is longer; that makes 96 bytes

	n, f     uint32 // no state holds more: see maxUnits and maxRequests
	t        int64
	fullAt   int64 // µs: the limit is full again, there is nothing to remember
	deniedAt int64 // µs
	more     *more // nil for most
}

// More is what some records have besides.
type more struct {
	name []byte
	log  *log
}

// A link leads to a record: the first is 1, and 0 is none.
type link uint32

// blockSize is how many records are allocated at once.
const blockSize = 64

func (rs *records) at(l link) *record {
	return &rs.blocks[(l-1)/blockSize][(l-1)%blockSize]
}

// find returns the record of a name, nil if there is none.
func (rs *records) find(hash uint32, n name) *record {
	if rs.made == 0 {
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
func (rs *records) add(hash uint32, n name) *record {
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
		r.more = &more{name: n.appendTo(nil)}
	}
	*head = l
	rs.keys++
	return r
}

// make returns a new record, which is free.
func (rs *records) make() link {
	if rs.made%blockSize == 0 {
		rs.blocks = append(rs.blocks, new([blockSize]record))
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
	*r = record{next: rs.free}
	rs.free = l
	rs.keys--
}

func (rs *records) chain(hash uint32) *link {
	return &rs.chains[chainOf(hash, len(rs.chains))]
}

// chainOf returns which of n chains a hash selects: by as many of its bits as
// it takes to number n, or by one less if there is no such chain yet.
func chainOf(hash uint32, n int) int {
	mask := uint32(1)<<bits.Len32(uint32(n-1)) - 1
	if c := int(hash & mask); c < n {
		return c
	}
	return int(hash & (mask >> 1))
}

// split adds a chain, and moves there what it selects now. All of that was in
// one other chain: the one whose number lacks the highest bit.
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

func (r *record) state() state {
	s := state{t: r.t, n: int64(r.n), f: int64(r.f)}
	if r.more != nil {
		s.log = r.more.log
	}
	return s
}

func (r *record) put(s state, fullAt int64) {
	r.t, r.n, r.f, r.fullAt = s.t, uint32(s.n), uint32(s.f), fullAt
	if s.log == nil {
		return
	}
	if r.more == nil {
		r.more = &more{}
	}
	r.more.log = s.log
}
