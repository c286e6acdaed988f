// Package draw draws random arguments for tests, with the standard library alone: go mod tidy of an adopter reads the tests of the
// packages that it imports, so these tests import no module of others.
package draw

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// runs is how often Check calls a test.
const runs = 200

// Values are random values. One goroutine may use them.
type Values struct{ next func() uint64 }

// Check runs f with different values, each time in a subtest that is named after its seed: go test -run 'TestName/seed=7' repeats it.
func Check(t *testing.T, f func(t *testing.T, v *Values)) {
	t.Helper()
	for seed := range uint64(runs) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { f(t, &Values{rand.NewPCG(seed, 0).Uint64}) })
	}
}

// From returns values that a fuzzer chooses with its data, and zeros when it has no more.
func From(data []byte) *Values {
	return &Values{func() uint64 {
		var word [8]byte
		data = data[copy(word[:], data):]
		return binary.LittleEndian.Uint64(word[:])
	}}
}

// Uint64 returns any number.
func (v *Values) Uint64() uint64 { return v.next() }

// Bool returns a coin's side.
func (v *Values) Bool() bool { return v.next()&1 == 1 }

// Int64 returns a number from least to most. Mistakes gather at ends and among small numbers, so every fourth number is one of the
// ends, or within a few of them, and every fourth has any number of digits.
func (v *Values) Int64(least, most int64) int64 {
	span, x := uint64(most)-uint64(least), v.next() // one less than there are numbers
	switch v.next() % 4 {
	case 0:
		x %= 3
		if v.Bool() {
			x = span - min(x, span)
		}
	case 1:
		x >>= v.next() % 64
	}
	if span+1 != 0 {
		x %= span + 1
	}
	return least + int64(x)
}

// Int returns a number from least to most, as Int64 does.
func (v *Values) Int(least, most int) int { return int(v.Int64(int64(least), int64(most))) }

// Text returns up to most of the bytes or characters that are listed.
func (v *Values) Text(listed string, least, most int) string {
	of, text := []rune(listed), make([]rune, v.Int(least, most))
	for i := range text {
		text[i] = of[v.next()%uint64(len(of))]
	}
	return string(text)
}

// Some returns n values of one.
func Some[T any](n int, one func() T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = one()
	}
	return all
}

// Of returns one of the values that are listed.
func Of[T any](v *Values, listed ...T) T { return listed[v.next()%uint64(len(listed))] }
