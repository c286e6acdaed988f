// The texts of a policy's keys: which the policy may make, and which belongs to an
// account or an address.

package console

import (
	"context"
	"fmt"
	"net/http"
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
	address  = "ip"    // the kind of keyfunc.IP and keyfunc.Peer
	account  = "usr"   // the kind of keyfunc.User and keyfunc.APIKey
	constant = "const" // the kind of keyfunc.Const
)

// texts are the texts of a policy's keys.
type texts struct {
	policy string
	key    keyfunc.Key
	info   keyfunc.Info
	kinds  []string   // of all parts that a text may have
	forms  [][]string // of the texts; see package keyaccess
	exact  bool       // every address is in a text that key makes
}

func textsOf(p *ratelimit.Policy) *texts {
	t := &texts{policy: p.Name, key: p.Key, exact: true}
	if t.key == (keyfunc.Key{}) {
		t.key = keyfunc.IP(nil)
	}
	t.info, _ = t.key.Inspect() // ratelimit.New has refused misconfigured keys
	t.kinds, t.forms = t.info.Kinds, keyaccess.Forms(t.key)
	if len(t.info.Challenges) > 0 || slices.ContainsFunc(t.kinds, isCustom) {
		// An unknown key is charged to an address that is not in a text of the
		// Key.
		t.exact = false
		t.forms = append(t.forms, []string{address})
		if !slices.Contains(t.kinds, address) {
			t.kinds = append(t.kinds, address)
		}
	}
	return t
}

// isCustom reports whether a kind is one of keyfunc.Custom.
func isCustom(kind string) bool {
	return kind != address && kind != account && kind != constant && kind != "rt" && !strings.HasPrefix(kind, "hdr.")
}

// of returns the text of a subject's key.
func (t *texts) of(s Subject) (string, error) {
	named := 0
	for _, given := range []bool{s.Key != "", s.ID != "", s.IP.IsValid()} {
		if given {
			named++
		}
	}
	switch {
	case named != 1:
		return "", fmt.Errorf("ratelimit: %w: want exactly one of key, id and ip", algorithms.ErrInvalid)
	case s.ID != "":
		return t.ofAccount(s.ID)
	case s.IP.IsValid():
		return t.ofAddress(s.IP)
	case s.Key == ratelimit.Everyone:
		return s.Key, nil
	default:
		return s.Key, t.check(s.Key)
	}
}

// refuse returns the error for a key that the policy never makes. It must not
// contain the key, which may be a secret.
func (t *texts) refuse(detail string) error {
	return fmt.Errorf("ratelimit: %w: policy %q makes no such key: %s", algorithms.ErrInvalid, t.policy, detail)
}

// check returns an error unless the policy may make the text.
func (t *texts) check(text string) error {
	parts := strings.Split(text, "|")
	for _, part := range parts {
		kind, value, _ := strings.Cut(part, "=")
		switch {
		case !slices.Contains(t.kinds, kind):
			return t.refuse("want KIND=VALUE, or several of these joined by |; its kinds are " + strings.Join(t.kinds, ", "))
		case !escaped(value):
			return t.refuse("a value is empty, or has a byte that keys contain only as %XX, such as %20 for a space")
		case kind == address && !t.mayHave(value):
			return t.refuse("it writes addresses in another form, such as 2001:db8::/64; name the client by ip")
		}
	}
	if !t.has(parts...) {
		return t.refuse("want the parts " + t.shapes())
	}
	return nil
}

// has reports whether a text with these parts, or with parts of these kinds, has one
// of the forms.
func (t *texts) has(parts ...string) bool {
	return slices.ContainsFunc(t.forms, func(form []string) bool {
		return slices.EqualFunc(form, parts, func(f, part string) bool {
			kind, _, _ := strings.Cut(part, "=")
			return f == part || f == kind
		})
	})
}

// shapes returns the forms of the texts as text, such as "usr|rt or ip|rt".
func (t *texts) shapes() string {
	var all []string
	for _, form := range t.forms {
		all = append(all, strings.Join(form, "|"))
	}
	return strings.Join(all, " or ")
}

// escaped reports whether a part of a key may have the value.
func escaped(value string) bool {
	plain, err := url.PathUnescape(value)
	return err == nil && textOfAccount(plain) == account+"="+value
}

// mayHave reports whether a part of the kind ip may have the value.
func (t *texts) mayHave(value string) bool {
	if value == "unknown" { // a peer without an address
		return true
	}
	a, err := netip.ParseAddr(value)
	canonical := a.Unmap().WithZone("").String()
	if err != nil {
		prefix, err := netip.ParsePrefix(value)
		if err != nil || prefix.Addr().Is4() {
			return false
		}
		a, canonical = prefix.Addr(), prefix.Masked().String()
	}
	if value != canonical {
		return false
	}
	if !t.exact {
		return true
	}
	text := t.make(a)
	return text == "" || slices.Contains(strings.Split(text, "|"), address+"="+value)
}

// make returns the text that the Key makes for a request that has only an address;
// empty for none.
func (t *texts) make(a netip.Addr) (text string) {
	// Without the service's own middleware before it, a function of the Key may
	// panic.
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	text, err := t.key.Of(&http.Request{
		Method: http.MethodGet, URL: &url.URL{Path: "/"}, Header: http.Header{}, Body: http.NoBody,
		RemoteAddr: netip.AddrPortFrom(a, 0).String(),
	})
	if err != nil {
		return ""
	}
	return text
}

// ofAddress returns the text for the address of a client.
func (t *texts) ofAddress(a netip.Addr) (string, error) {
	if !slices.Contains(t.info.Kinds, address) {
		return "", t.counts("addresses")
	}
	text, found := t.make(a), false
	for part := range strings.SplitSeq(text, "|") {
		kind, _, _ := strings.Cut(part, "=")
		if kind != address && kind != constant {
			return "", t.incomplete(address)
		}
		found = found || kind == address
	}
	if !found {
		return "", t.incomplete(address)
	}
	return text, nil
}

// ofAccount returns the text for the ID of an account.
func (t *texts) ofAccount(id string) (string, error) {
	switch {
	case !slices.Contains(t.info.Kinds, account):
		return "", t.counts("accounts")
	case !t.has(account):
		return "", t.incomplete(account)
	default:
		return textOfAccount(id), nil
	}
}

// textOfAccount returns the text that package keyfunc makes of an ID; empty for an
// empty ID.
func textOfAccount(id string) string {
	user := keyfunc.User(func(context.Context) (keyfunc.Identity, bool) { return keyfunc.Identity{ID: id}, true })
	text, _ := user.Of(new(http.Request)) // only an empty ID is an error
	return text
}

// counts returns the error for a policy that counts no accounts, or no addresses.
func (t *texts) counts(no string) error {
	return fmt.Errorf("ratelimit: %w: policy %q counts no %s; the kinds of its keys are %s",
		algorithms.ErrInvalid, t.policy, no, strings.Join(t.kinds, ", "))
}

// incomplete returns the error for a text that may lack parts.
func (t *texts) incomplete(has string) error {
	var lacks []string
	for _, kind := range t.info.Kinds {
		if kind != has {
			lacks = append(lacks, kind)
		}
	}
	return fmt.Errorf("ratelimit: %w: a key of policy %q may also have parts of the kinds %s: name the client by the whole key",
		algorithms.ErrInvalid, t.policy, strings.Join(lacks, ", "))
}
