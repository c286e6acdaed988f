package algorithms

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"testing"
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
			n := name{algorithmTokenBucket, "policy", fmt.Sprint("usr=", random.IntN(500))}
			if random.IntN(2) == 0 {
				n.key += strings.Repeat("x", 60) // too long for the record itself
			}
			hash := uint32(maphash.String(seedOfTest, n.key) % hashes)
			r := rs.find(hash, n)
			if r != want[n] {
				t.Fatalf("%d hashes: find(%q) = %p, want %p", hashes, n.key, r, want[n])
			}
			switch {
			case r == nil:
				want[n] = rs.add(hash, n)
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

// Chains stay short while the table grows, and so does the work of one growth.
func TestRecordsSpread(t *testing.T) {
	t.Parallel()
	var rs records
	for i := range 10_000 {
		n := name{algorithmTokenBucket, "policy", fmt.Sprint("usr=", i)}
		rs.add(uint32(maphash.String(seedOfTest, n.key)), n)
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

func TestNamesTellChecksApart(t *testing.T) {
	t.Parallel()
	check := func(policy, key string, limit Limit) Check { return Check{Policy: policy, Key: key, Limit: limit} }
	bucket, window := TokenBucket(1, 1000), FixedWindow(1, 1000)
	long := strings.Repeat("x", maxPart+1)
	digest := longName(&Check{Policy: "a", Key: long, Limit: bucket}).key
	checks := []Check{
		check("a", "bc", bucket), check("ab", "c", bucket), check("a", "bc", window), check("x", "bc", bucket), check("bc", "a", bucket),
		check("a", string(rune(algorithmTokenBucket))+"bc", bucket), check("a", "b"+string(rune(algorithmTokenBucket))+"c", bucket),
		check("a", long, bucket), check("a", long+"x", bucket), check("a", long[1:], bucket), check("a", digest, bucket),
	}
	for i := range checks {
		n := nameOf(&checks[i])
		piece := n.appendTo(nil)
		if len(piece) != n.len() {
			t.Errorf("%q: len is %d, want %d", piece, n.len(), len(piece))
		}
		for j := range checks {
			if got := nameOf(&checks[j]).is(piece); got != (i == j) {
				t.Errorf("the name of %+v is that of %+v: %v", checks[j], checks[i], got)
			}
		}
	}
}
