// The hash table of a shard.

package algorithms

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// The table finds what a map finds, through growth, removal and reuse, though
// hashes collide.
func TestRecordsAreAMap(t *testing.T) {
	t.Parallel()
	for _, hashes := range []uint64{1, 3, 100, 1 << 32} {
		random := rand.New(rand.NewPCG(hashes, 1))
		var rs records
		want := make(map[name]*record)
		for range 20_000 {
			n := nameOfText(fmt.Sprint("usr=", random.IntN(500)))
			if random.IntN(2) == 0 {
				n.text += strings.Repeat("x", 60) // too long for the record itself
			}
			hash := uint32(maphash.String(seedOfTest, n.text) % hashes)
			r := rs.find(hash, &n)
			if r != want[n] {
				t.Fatalf("%d hashes: find(%q) = %p, want %p", hashes, n.text, r, want[n])
			}
			switch {
			case r == nil:
				want[n] = rs.add(hash, &n)
			case random.IntN(3) > 0:
				rs.remove(r)
				delete(want, n)
			}
			if rs.keys != len(want) {
				t.Fatalf("got %d keys, want %d", rs.keys, len(want))
			}
		}
		if len(rs.chains) != 2*rs.made || rs.made > 1_000 {
			t.Errorf("%d hashes: got %d chains and %d records, want twice as many chains, and records reused", hashes, len(rs.chains), rs.made)
		}
	}
}

var seedOfTest = maphash.MakeSeed()

func nameOf(policy, text string, row byte) (n name) {
	n.set(policy, text, row)
	return n
}

func nameOfText(text string) name {
	return nameOf("policy", text, step.TokenBucket.ID)
}

// Chains stay short while the table grows, and so does the work of one growth.
func TestRecordsSpread(t *testing.T) {
	t.Parallel()
	var rs records
	for i := range 10_000 {
		n := nameOfText(fmt.Sprint("usr=", i))
		rs.add(uint32(maphash.String(seedOfTest, n.text)), &n)
	}
	longest, used := 0, 0
	for i := range rs.chains {
		length := 0
		for l := rs.chains[i]; l != 0; l = rs.at(l).next {
			length++
		}
		longest, used = max(longest, length), used+min(1, length)
	}
	if longest > 15 || used < 6_000 {
		t.Errorf("got %d chains in use, the longest of %d records, want over 6 000 of at most 15", used, longest)
	}
}

func TestNamesTellKeysApart(t *testing.T) {
	t.Parallel()
	bucket, window := step.TokenBucket, step.FixedWindow
	long := strings.Repeat("x", maxName+1)
	digest := nameOf("a", long, bucket.ID).text
	keys := []step.Key{
		{Policy: "a", Text: "bc", Scope: bucket}, {Policy: "ab", Text: "c", Scope: bucket}, {Policy: "a", Text: "bc", Scope: window},
		{Policy: "x", Text: "bc", Scope: bucket}, {Policy: "bc", Text: "a", Scope: bucket},
		{Policy: "a", Text: string(rune(bucket.ID)) + "bc", Scope: bucket}, {Policy: "a", Text: "b" + string(rune(bucket.ID)) + "c", Scope: bucket},
		{Policy: "a", Text: long, Scope: bucket}, {Policy: "a", Text: long + "x", Scope: bucket},
		{Policy: "a", Text: long[1:], Scope: bucket}, {Policy: "a", Text: digest, Scope: bucket},
	}
	for i := range keys {
		n := nameOf(keys[i].Policy, keys[i].Text, keys[i].Scope.ID)
		piece := n.appendTo(nil)
		if len(piece) != n.len() {
			t.Errorf("%q: len is %d, want %d", piece, n.len(), len(piece))
		}
		for j := range keys {
			other := nameOf(keys[j].Policy, keys[j].Text, keys[j].Scope.ID)
			if got := other.is(piece); got != (i == j) {
				t.Errorf("the name of %+v is the name of %+v: %v", keys[j], keys[i], got)
			}
		}
	}
}
