// The keys of a client.

package console

import (
	"regexp"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/keyfunc"
)

func firstOf(key string) string {
	first, _, _ := strings.Cut(key, "|")
	return first
}

// hash is a part of a key as TopDenied shows it.
var hash = regexp.MustCompile(`(^|\|)[a-z0-9.-]+=#[0-9a-f]{16}($|\|)`)

// cut is the length at which TopDenied cuts keys.
const cut = 128

// keysOf returns the keys of a client that a policy may make: the given keys, the
// keys that it denied lately, and all that it can make of the given parts, with
// each route that it has met. A part without a value is only its kind.
func (w *watched) keysOf(client []Subject) (keys []string) {
	parts := make(map[string][]string) // by kind
	for _, s := range client {
		if s.Policy != "" && s.Policy != w.policy.Name {
			continue
		}
		for _, part := range w.partsOf(s) {
			if strings.Contains(part, "|") || strings.HasPrefix(part, constant) && w.check(part, false) == nil {
				keys = union(keys, part)
			} else {
				parts[kindOf(part)] = append(parts[kindOf(part)], part)
			}
		}
	}
	for _, o := range w.offenders {
		if len(o.Plain) < cut && has(parts, o.Plain) && w.check(o.Plain, false) == nil {
			keys = union(keys, o.Plain)
		}
	}
	if len(parts[route]) == 0 {
		parts[route] = w.routes()
	}
	for _, form := range w.forms {
		if !slices.ContainsFunc(form, func(kind string) bool { return kind != route && len(parts[kind]) > 0 }) {
			continue
		}
		for _, key := range fill(form, parts) {
			if whole(key) || len(keys) == 0 { // otherwise the denied keys say more
				keys = union(keys, key)
			}
		}
	}
	return keys
}

// partsOf returns the parts, or the whole keys, of a subject that the policy's keys
// may have.
func (w *watched) partsOf(s Subject) []string {
	s.Key = w.spelled(s.Key)
	switch {
	case s.ID != "":
		return []string{keyfunc.Text(account, s.ID)}
	case s.IP.IsValid():
		return w.addresses(s.IP)
	case strings.Contains(s.Key, "|"):
		if w.check(s.Key, false) != nil {
			return nil
		}
		return []string{s.Key}
	case kindOf(s.Key) == address && s.Key != "ip=unknown":
		given, ok := prefixOf(s.Key)
		if !ok {
			return nil
		}
		return slices.DeleteFunc(w.addresses(given.Addr()), func(part string) bool {
			p, _ := prefixOf(part)
			return p.Bits() > given.Bits() // one of many keys behind the prefix
		})
	case escaped(strings.TrimPrefix(s.Key, kindOf(s.Key)+"=")):
		return []string{s.Key}
	default:
		return nil
	}
}

// routes returns the routes that keys of the policy had.
func (w *watched) routes() []string {
	all := w.m.Inside().Routes(w.policy.Name)
	for _, o := range w.offenders {
		for part := range strings.SplitSeq(o.Plain, "|") {
			if kindOf(part) == route {
				all = union(all, part)
			}
		}
	}
	slices.Sort(all)
	return all
}

// has reports whether a key has a given part, and no part of its kinds is another.
func has(parts map[string][]string, key string) bool {
	found := false
	for part := range strings.SplitSeq(key, "|") {
		given := parts[kindOf(part)]
		switch {
		case slices.Contains(given, part):
			found = found || kindOf(part) != route
		case len(given) > 0:
			return false
		}
	}
	return found
}

// fill returns the keys of a form, for each combination of parts.
func fill(form []string, parts map[string][]string) []string {
	keys := []string{""}
	for i, kind := range form {
		values := parts[kind]
		if len(values) == 0 {
			values = []string{kind} // a constant, or unknown
		}
		var longer []string
		for _, key := range keys {
			for _, value := range values {
				if i > 0 {
					value = key + "|" + value
				}
				longer = append(longer, value)
			}
		}
		keys = longer
	}
	return keys
}
