package limitertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
)

// runKeys checks that whatever key is asked for is counted, and apart from every other.
func runKeys(t *testing.T, s Subject) { s.run(t, keyRules) }

// oddities are ends of keys that a store might take for something else.
func oddities() []string {
	long := strings.Repeat("k", 1<<20)
	return []string{
		"", "a", "A", "a ", " a", "a\t", "a\n", "a\r\n", "a\x00", "\x00", "\x00\x00", "a\x00b", "\x7f", "\xff", "\xff\xfe", "\u00e4", "a\u0308", "\u2028", "\U0001f600",
		"{", "}", "{}", "}{", "{a}", "a}", "{a", "{{a}}", "a{b}c", "*", "?", "[a]", "\\", "\"", "'", "%", "%7C", "%7c",
		":", "::", ":tb", ":" + policy, ":" + policy + ":tb", "a:" + policy + ":tb", "~", "~candidate", ",", ";", "=", "#", "##", "#a",
		strings.Repeat("k", 127), strings.Repeat("k", 128), strings.Repeat("k", 129), strings.Repeat("k", 1<<10), long, long + "a", "a" + long,
		strings.Repeat(" ", 1<<20), strings.Repeat("{", 200), strings.Repeat("}", 200), strings.Repeat("\xff", 200),
	}
}

var keyRules = []rule{
	{"odd-keys", "odd keys all work, and are pairwise distinct, also as a first, middle or last part", func(w *world) {
		l := ten()[0]
		odd := oddities()
		for _, form := range []func(string) string{
			func(o string) string { return w.principal + "|" + o },
			func(o string) string { return w.principal + o },
			func(o string) string { return w.principal + "|" + o + "|z" },
		} {
			w.distinct(l, odd, form)
			w.principal += "-"
		}
	}},
	{"odd-first-part", "an odd first part is counted apart from every other, too", func(w *world) {
		l := ten()[0]
		own := w.principal
		// The empty key is none at all, and these are not this world's alone: forget them first.
		keys := oddities()[1:]
		for _, k := range keys {
			w.one(algorithms.Check{Policy: policy, Key: k, Limit: l, Op: algorithms.Reset})
		}
		w.distinct(l, keys, func(o string) string { return o })
		w.distinct(l, oddities(), func(o string) string { return o + "|" + own })
		w.distinct(l, keys, func(o string) string { return "|" + o + own })
	}},
	{"bars", "what stands between bars counts, and how many bars there are", func(w *world) {
		w.distinct(ten()[0], []string{"", "|", "||", "|||", "|a", "a|", "a|b", "a||b", "|a|b", "a|b|", "||a", "a||", "a|b|c", "ab|c", "a|bc", "abc"},
			func(o string) string { return w.principal + "|" + o })
	}},
	{"digest", "no key can be made to equal the digest of another", func(w *world) {
		// The digest of "a b" and of "" in base64url, as it is stored.
		w.distinct(ten()[0], []string{"a b", "#yGh6CKpdbtIEQyj6aml6uOltw0KR6MIDSujDjm_MbWU", "#" + "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", "", "#"},
			func(o string) string { return w.principal + "|" + o })
	}},
	{"policies", "one key under two policies is counted twice", func(w *world) {
		l := ten()[0]
		names := []string{"a", "A", "aa", "a.b", "a-b", "a_b", "a~b", "a~bb", "b~a", "Z9", strings.Repeat("p", 64), strings.Repeat("p", 63) + "q", strings.Repeat("p", 64) + "~candidate"}
		for i, name := range names {
			w.one(algorithms.Check{Policy: name, Key: w.principal, Limit: l, Cost: int64(i % 10)})
		}
		for i, name := range names {
			w.remaining(algorithms.Check{Policy: name, Key: w.principal, Limit: l}, int64(10-i%10))
		}
	}},
	{"algorithms", "one key under two algorithms is counted twice", func(w *world) {
		for i, l := range ten() {
			w.take(l, int64(2*i))
		}
		for i, l := range ten() {
			w.remaining(w.on("", l, 0), int64(10-2*i))
		}
	}},
	{"one-call", "keys that differ in little are told apart within one call, too", func(w *world) {
		var call []algorithms.Check
		for i, l := range ten() {
			call = append(call, w.on("k", l, int64(i)), w.on("k|", l, int64(i+1)), as(algorithms.Trial, w.on("k", l, int64(i+2))))
		}
		for i, c := range w.allow(call...) {
			if got, want := c.Decision.Remaining, 10-c.Cost; got != want {
				w.errorf("check %d of %s: got %d remaining, want %d", i, text(call), got, want)
			}
		}
	}},
}

// distinct takes another cost from each key, and wants each to remember its own.
func (w *world) distinct(l algorithms.Limit, odd []string, form func(string) string) {
	w.Helper()
	l = algorithms.TokenBucket(1000, l.Window())
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
		if got, want := w.peek(algorithms.Check{Policy: policy, Key: form(o), Limit: l}).Remaining, int64(1000-i-1); got != want {
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
