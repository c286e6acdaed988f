// The texts of a policy's keys: which the policy may make, and which belong to a
// client.

package console

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/keyaccess"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

const (
	address  = keyaccess.IP   // the kind of keyfunc.IP and keyfunc.Peer
	account  = keyaccess.User // the kind of keyfunc.User and keyfunc.APIKey
	route    = keyaccess.Route
	constant = keyaccess.Const + "=" // begins the part of a keyfunc.Const
)

// A watched is a policy, the texts of its keys, and the keys that it denied lately.
type watched struct {
	m         *ratelimit.Middleware
	policy    *ratelimit.Policy
	offenders []ratelimit.Offender

	clientIP keyfunc.Key // of unknown keys; zero if there are none
	own      [][]string  // forms of the texts that the policy counts; see package keyaccess
	forms    [][]string  // own, and the address of unknown keys
	folded   []string    // kinds; see keyaccess.Info
	apiKeys  bool        // the policy reads API keys
}

// watch returns a policy with the offenders of all Middlewares.
func (c *Console) watch(m *ratelimit.Middleware, p *ratelimit.Policy) *watched {
	info, _ := p.Key.Inspect()       // ratelimit.New has refused misconfigured keys
	tenant, _ := p.ShareBy.Inspect() // the zero Key has no forms
	w := &watched{m: m, policy: p, own: slices.Concat(info.Forms, tenant.Forms), folded: info.Folded}
	w.forms, w.apiKeys = w.own, len(info.Challenges) > 0
	if info.Unknown {
		w.clientIP, w.forms = m.Inside().ClientIP(), append(slices.Clone(w.own), []string{address})
	}
	for _, other := range c.all {
		w.offenders = append(w.offenders, other.TopDenied(p.Name, rememberedKeys)...)
	}
	return w
}

func kindOf(part string) string {
	kind, _, _ := strings.Cut(part, "=")
	return kind
}

// union appends the texts that all lacks.
func union(all []string, more ...string) []string {
	for _, text := range more {
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// shapes returns the forms of the texts as text, such as "usr|rt or ip|rt".
func (w *watched) shapes() string {
	var all []string
	for _, form := range w.forms {
		all = union(all, strings.Join(form, "|"))
	}
	return strings.Join(all, " or ")
}

// addresses returns the parts that keys have for an address.
func (w *watched) addresses(a netip.Addr) []string {
	return union(w.policy.Key.Addresses(a), w.clientIP.Addresses(a)...)
}

// of returns the text of a subject's key, or with prefix also the first part of its
// keys, or Everyone.
func (w *watched) of(s Subject, prefix bool) (string, error) {
	if err := s.validate(); err != nil {
		return "", err
	}
	switch {
	case s.ID != "":
		return w.with("accounts", prefix, keyfunc.Text(account, s.ID))
	case s.IP.IsValid():
		return w.with("addresses", prefix, w.addresses(s.IP)...)
	case s.Key == ratelimit.Everyone:
		return s.Key, nil
	default:
		key := w.spelled(s.Key)
		return key, w.check(key, prefix)
	}
}

// spelled returns a text with the values of folded kinds as keys have them, so that an operator's spelling of an account
// names the account.
func (w *watched) spelled(text string) string {
	parts := strings.Split(text, "|")
	for i, part := range parts {
		kind, value, _ := strings.Cut(part, "=")
		if plain, err := url.PathUnescape(value); err == nil && slices.Contains(w.folded, kind) {
			parts[i] = keyfunc.Text(kind, strings.ToLower(strings.TrimSpace(plain)))
		}
	}
	return strings.Join(parts, "|")
}

// with returns the one text that has one of the parts, and besides it only constants.
// With prefix, it returns the part if it is the first of a text.
func (w *watched) with(what string, prefix bool, parts ...string) (string, error) {
	var found []string
	counts := false
	for _, form := range w.forms {
		for _, part := range parts {
			i := slices.Index(form, kindOf(part))
			if i < 0 {
				continue
			}
			counts = true
			others := slices.ContainsFunc(form, func(f string) bool { return f != kindOf(part) && !strings.HasPrefix(f, constant) })
			if prefix && i == 0 {
				found = union(found, part)
			} else if !prefix && !others {
				found = union(found, strings.Join(slices.Replace(slices.Clone(form), i, i+1, part), "|"))
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case !counts:
		return "", w.refuse("it counts no " + what + ", but " + w.shapes())
	default:
		return "", w.refuse("its keys are " + w.shapes() + "; name one by the text that Who lists")
	}
}

// refuse returns the error for a key that the policy never makes. It must not
// contain the key, which may be a secret.
func (w *watched) refuse(detail string) error {
	return fmt.Errorf("ratelimit: %w: policy %q makes no such key: %s", algorithms.ErrInvalid, w.policy.Name, detail)
}

// check returns an error unless the policy may make the text, or with begins a text
// that begins with this part.
func (w *watched) check(text string, begins bool) error {
	parts, kinds := strings.Split(text, "|"), slices.Concat(w.forms...)
	for _, part := range parts {
		kind, value, _ := strings.Cut(part, "=")
		form := func() bool {
			prefix, ok := prefixOf(part)
			return ok && slices.Contains(w.addresses(prefix.Addr()), part)
		}
		switch {
		case !slices.ContainsFunc(kinds, func(part string) bool { return kindOf(part) == kind }):
			return w.refuse("want KIND=VALUE, or several of these joined by |; its keys are " + w.shapes())
		case !escaped(value):
			return w.refuse("a value is empty, or has a byte that keys contain only as %XX, such as %20 for a space")
		case kind == address && part != "ip=unknown" && !form():
			return w.refuse("it writes addresses in another form, such as 2001:db8::/64; name the client by ip")
		}
	}
	if slices.ContainsFunc(w.forms, func(form []string) bool { return fits(form, parts, begins) }) {
		return nil
	}
	return w.refuse("its keys are " + w.shapes())
}

// fits reports whether the parts have a form, or are the first of its parts.
func fits(form, parts []string, prefix bool) bool {
	right := len(parts) == len(form) || prefix && len(parts) == 1
	return right && slices.EqualFunc(form[:len(parts)], parts, func(kind, part string) bool { return kind == part || kind == kindOf(part) })
}

// escaped reports whether a part of a key may have the value.
func escaped(value string) bool {
	plain, err := url.PathUnescape(value)
	return err == nil && value != "" && keyfunc.Text(account, plain) == account+"="+value
}

// prefixOf returns the addresses of a part, such as ip=2001:db8::/64.
func prefixOf(part string) (netip.Prefix, bool) {
	text := strings.TrimPrefix(part, "ip=")
	if a, err := netip.ParseAddr(text); err == nil {
		a = a.Unmap().WithZone("")
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	p, err := netip.ParsePrefix(text)
	return p, err == nil
}
