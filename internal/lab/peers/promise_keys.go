// The promise about keys.

package main

import (
	"strings"
	"time"
)

// strange are keys that mean something to a store, or that look alike.
var strange = []string{
	"a", "A", "*", "?", "{a}", "}", "a|b", "a:b", "a/b", "/a//b", "a%2Fb", "[ab]", "a,b", `"a"`, strings.Repeat("x", 300) + "1", strings.Repeat("x", 300) + "2",
}

// keys: Each of 16 clients uses 3 of 10 per hour, and has 7 left. Their names have letters that mean something to a
// store, differ in case, or differ at the end of 300 letters. Where a key may have two parts, "a:b" and "c" count apart from "a" and "b:c", and so do
// parts with "|", "/", "," and a space.
func keys(t *trial) (verdict, error) {
	l, err := t.open(quota{10, time.Hour})
	if err != nil {
		return verdict{}, err
	}
	for range 3 {
		if err := l.each(strange...); err != nil {
			return verdict{}, err
		}
	}
	begin := time.Now()
	for _, key := range strange {
		left := 0
		for range 10 {
			a, err := l.take(key)
			if err != nil {
				return verdict{}, err
			}
			if a.allowed {
				left++
			}
		}
		if left < 7 || left > 7+t.extra(begin) {
			return broken("the client %.10q had %d of 10 left after 3 requests", key, left)
		}
	}
	if l.pair == nil {
		return kept("16 clients count apart")
	}
	for _, mark := range []string{":", "|", "/", ",", " "} {
		for range 10 {
			if _, err := l.pair("a"+mark+"b", "c"); err != nil {
				return verdict{}, err
			}
		}
		a, err := l.pair("a", "b"+mark+"c")
		if err != nil {
			return verdict{}, err
		}
		if !a.allowed {
			return broken("the key of %q and %q was denied, because the key of %q and %q had used the limit", "a", "b"+mark+"c", "a"+mark+"b", "c")
		}
	}
	return kept("16 clients count apart, and so do keys of two parts")
}
