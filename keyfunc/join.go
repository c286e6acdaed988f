package keyfunc

import (
	"errors"
	"slices"

	"github.com/penstock-go/penstock/internal/keyaccess"
)

// Join returns the Key of several parts together. An error of a part is its error. At most one part may have an
// [Identity]. Put the client first: a Join must not begin with a route, because one shard of a Redis Cluster keeps
// all counters of a first part.
func Join(keys ...Key) Key {
	parts, misconfigurations := partsOf("Join", keys)
	if len(keys) > 0 && keys[0].def != nil && keys[0].def.route {
		misconfigurations = append(misconfigurations, misconfigurationf("Join must not begin with a route: "+
			"the first part places a key in a Redis Cluster; put the client first"))
	}
	n := 0 // identities
	for _, p := range parts {
		if p.info.Identity {
			n++
		}
	}
	if n > 1 {
		misconfigurations = append(misconfigurations, misconfigurationf("Join: %d parts yield an identity, "+
			"so its tier is ambiguous; keep one APIKey or User, or put them into one FirstOf", n))
	}
	k := newPartsKey(parts, joinForms, func(dst []byte, q *Request) ([]byte, string, error) {
		var tier string
		for i, p := range parts {
			if i > 0 {
				dst = append(dst, '|')
			}
			var its string
			var err error
			if dst, its, err = p.append(dst, q); err != nil {
				return nil, "", err
			}
			if its != "" { // of one part at most
				tier = its
			}
		}
		return dst, tier, nil
	}, misconfigurations)
	k.def.optional = slices.ContainsFunc(parts, isOptional)
	return k
}

// FirstOf returns the first of the keys that the request has. Only ErrMissing leads to the next key, because bad
// credentials must not turn a client into another. If no key is left, the error is ErrMissing, and also
// [ErrMalformed] if all keys are [Custom].
func FirstOf(keys ...Key) Key {
	parts, misconfigurations := partsOf("FirstOf", keys)
	if slices.ContainsFunc(parts, isOptional) {
		misconfigurations = append(misconfigurations, misconfigurationf("FirstOf: a key is Optional, "+
			"so the keys after it would never count; write Optional(FirstOf(...))"))
	}
	missing := requestError("FirstOf", ErrMissing, "none of its keys is in the request")
	noValue := &customError{clientError{"FirstOf", errors.Unwrap(missing)}}
	k := newPartsKey(parts, eitherForm, func(dst []byte, q *Request) ([]byte, string, error) {
		identity := false // one is missing
		for _, p := range parts {
			key, tier, err := p.append(dst, q)
			if err == nil {
				return key, tier, nil
			}
			if !errors.Is(err, ErrMissing) {
				return nil, "", err
			}
			identity = identity || !errors.Is(err, ErrMalformed)
		}
		if !identity {
			return nil, "", noValue
		}
		return nil, "", missing
	}, misconfigurations)
	k.def.route = slices.ContainsFunc(parts, func(p *definition) bool { return p.route })
	return k
}

// partsOf returns the definitions of the keys, and all their misconfigurations.
// It omits zero Keys.
func partsOf(name string, keys []Key) (parts []*definition, misconfigurations []error) {
	if len(keys) == 0 {
		return nil, []error{misconfigurationf("%s has no keys: pass at least one", name)}
	}
	for i, k := range keys {
		if k.def == nil {
			misconfigurations = append(misconfigurations, misconfigurationf("%s: key %d of %d is the zero Key", name, i+1, len(keys)))
			continue
		}
		parts = append(parts, k.def)
		misconfigurations = append(misconfigurations, k.def.err)
	}
	return parts, misconfigurations
}

func isOptional(p *definition) bool { return p.optional }

// newPartsKey returns the Key of f, which asks the parts. add adds the forms of one more part.
func newPartsKey(parts []*definition, add func(all, part [][]string) [][]string, f appendFunc, misconfigurations []error) Key {
	var all keyaccess.Info
	var ips []*ipPolicy
	for _, p := range parts {
		all.Kinds = appendNew(all.Kinds, p.info.Kinds)
		all.Folded = appendNew(all.Folded, p.info.Folded)
		all.Challenges = appendNew(all.Challenges, p.info.Challenges)
		all.Forms = add(all.Forms, p.info.Forms)
		all.Identity = all.Identity || p.info.Identity
		all.ByClientIP = all.ByClientIP || p.info.ByClientIP
		all.Unknown = all.Unknown || p.info.Unknown
		ips = append(ips, p.ips...)
	}
	k := newKey(f, all, misconfigurations...)
	k.def.ips = ips
	return k
}

// joinForms returns each of the forms with each form of the next part behind it.
func joinForms(all, part [][]string) [][]string {
	if len(all) == 0 {
		return part
	}
	var joined [][]string
	for _, form := range all {
		for _, next := range part {
			joined = append(joined, slices.Concat(form, next))
		}
	}
	return joined
}

// eitherForm returns the forms of all parts, each once.
func eitherForm(all, part [][]string) [][]string {
	for _, form := range part {
		if !slices.ContainsFunc(all, func(known []string) bool { return slices.Equal(known, form) }) {
			all = append(all, form)
		}
	}
	return all
}

// appendNew appends the texts that dst lacks.
func appendNew(dst, texts []string) []string {
	for _, s := range texts {
		if !slices.Contains(dst, s) {
			dst = append(dst, s)
		}
	}
	return dst
}
