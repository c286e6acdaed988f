// Tests of the figures.

package main

import "testing"

func TestCount(t *testing.T) {
	t.Parallel()
	const source = `// A comment.
package p

// X is a name.
const X, y = 1, 2

type T struct{ Field int }

func (T) M() {}

func (t) N() {}

func f() {
	a, b, c := 1, ` + "`two\nlines`" + `, 3 // a comment
	_, _, _ = a, b, c
	d, e := 1, 2
}
`
	var f figures
	if err := f.count("p.go", []byte(source)); err != nil {
		t.Fatal(err)
	}
	if err := f.count("p_test.go", []byte("package p\n\nvar Z int\n")); err != nil {
		t.Fatal(err)
	}
	want := figures{files: 1, lines: 11, longest: 18, tokens: 70, names: 3, testLines: 2}
	if f != want {
		t.Errorf("got %+v, want %+v", f, want)
	}
}
