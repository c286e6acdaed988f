// Every key is counted, whatever its bytes, and apart from every other key.

package limitertest

import (
	"fmt"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// oddities returns ends of keys that a store, a script or a hash tag might read as something else.
func oddities() []string {
	long := strings.Repeat("k", 1<<20)
	return []string{
		"", "a", "A", "a ", " a", "a\t", "a\n", "a\r\n", "a\x00", "\x00", "\x00\x00", "a\x00b", "\x7f",
		"\xff", "\xff\xfe", "\u00e4", "a\u0308", "\u2028", "\U0001f600",
		"{", "}", "{}", "}{", "{a}", "a}", "{a", "{{a}}", "a{b}c", "*", "?", "[a]", "\\", "\"", "'", "%", "%7C", "%7c",
		":", "::", ":tb", ":" + policy, ":" + policy + ":tb", "a:" + policy + ":tb", "~", "~candidate",
		",", ";", "=", "#", "##", "#a", "/a", "/a/", "//a", "/a//b", "/a/b", "/A", "/a%2Fb",
		strings.Repeat("k", 127), strings.Repeat("k", 128), strings.Repeat("k", 129), strings.Repeat("k", 1<<10),
		long, long + "a", "a" + long,
		strings.Repeat(" ", 1<<20), strings.Repeat("{", 200), strings.Repeat("}", 200), strings.Repeat("\xff", 200),
	}
}

var keyRules = []rule{
	// The text follows a bar, the principal, or stands between two bars.
	{"odd keys all work, and are pairwise distinct, also as a first, middle or last part", nil, func(w *world, _ algorithms.Limit) {
		odd := oddities()
		for _, form := range []func(string) string{
			func(o string) string { return w.principal + "|" + o },
			func(o string) string { return w.principal + o },
			func(o string) string { return w.principal + "|" + o + "|z" },
		} {
			w.distinct(odd, form)
			w.principal += "-"
		}
	}},
	{"an odd first part is counted apart from every other, too", nil, func(w *world, l algorithms.Limit) {
		own := w.principal
		// The empty key is invalid. The others are not this world's alone, so they are reset first.
		keys := oddities()[1:]
		for _, k := range keys {
			w.one(algorithms.Check{Policy: policy, Key: k, Limit: l, Op: algorithms.Reset})
		}
		w.distinct(keys, func(o string) string { return o })
		w.distinct(oddities(), func(o string) string { return o + "|" + own })
		w.distinct(keys, func(o string) string { return "|" + o + own })
	}},
	{"keys are distinct if the text between bars differs, or the number of bars", nil, func(w *world, _ algorithms.Limit) {
		w.distinct([]string{
			"", "|", "||", "|||", "|a", "a|", "a|b", "a||b", "|a|b", "a|b|", "||a", "a||",
			"a|b|c", "ab|c", "a|bc", "abc",
		}, func(o string) string { return w.principal + "|" + o })
	}},
	// Long and odd keys are stored as a digest. A client that sends the text of a digest must not reach the key
	// behind it.
	{"no key can be made to equal the digest of another", nil, func(w *world, _ algorithms.Limit) {
		// The digest of "a b" and of "" in base64url, as it is stored.
		w.distinct([]string{
			"a b", "#yGh6CKpdbtIEQyj6aml6uOltw0KR6MIDSujDjm_MbWU",
			"", "#" + "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", "#",
		}, func(o string) string { return w.principal + "|" + o })
	}},
	{"one key under two policies is counted twice", nil, func(w *world, l algorithms.Limit) {
		names := []string{
			"a", "A", "aa", "a.b", "a-b", "a_b", "a~b", "a~bb", "b~a", "Z9",
			strings.Repeat("p", 64), strings.Repeat("p", 63) + "q", strings.Repeat("p", 64) + "~candidate",
		}
		for i, name := range names {
			w.one(algorithms.Check{Policy: name, Key: w.principal, Limit: l, Cost: int64(i % 10)})
		}
		for i, name := range names {
			w.remaining(algorithms.Check{Policy: name, Key: w.principal, Limit: l}, int64(10-i%10))
		}
	}},
	// A call adds up the takes of equal keys, so it must not take different ones for equal.
	{"keys that differ in one byte are distinct within one call, too", nil, func(w *world, _ algorithms.Limit) {
		var call []algorithms.Check
		for i, l := range limits(every(), 100, time.Minute) {
			call = append(call, w.on("k", l, int64(i)), w.on("k|", l, int64(i+1)))
			call = append(call, as(algorithms.Trial, w.on("k", l, int64(i+2))))
		}
		for i, c := range w.allow(call...) {
			if got, want := c.Decision.Remaining, 100-c.Cost; got != want {
				w.errorf("check %d of %s: got %d remaining, want %d", i, text(call), got, want)
			}
		}
	}},
}

// distinct takes another cost from each key, and wants each to remember its own.
//
// The costs are different for each key, so a key that shares its count with any other has another number remaining.
func (w *world) distinct(odd []string, form func(string) string) {
	w.Helper()
	l := algorithms.TokenBucket(1000, 365*24*time.Hour)
	seen := make(map[string]bool)
	for i, o := range odd {
		c := algorithms.Check{Policy: policy, Key: form(o), Limit: l, Cost: int64(i + 1)}
		if seen[c.Key] {
			w.Fatalf("%.40q is there twice", c.Key)
		}
		seen[c.Key] = true
		if d := w.one(c); !d.Allowed || d.Remaining != 1000-c.Cost {
			w.errorf("key %s: got %s, want %d remaining", clip(c.Key), show(d), 1000-c.Cost)
		}
	}
	for i, o := range odd {
		c := algorithms.Check{Policy: policy, Key: form(o), Limit: l}
		if got, want := w.peek(c).Remaining, int64(1000-i-1); got != want {
			w.errorf("key %s: got %d remaining, want %d: it shares its count", clip(form(o)), got, want)
		}
	}
}

// clip shows a key that may be long.
func clip(key string) string {
	if len(key) <= 80 {
		return fmt.Sprintf("%q", key)
	}
	return fmt.Sprintf("%.40q... (%d bytes)", key, len(key))
}
