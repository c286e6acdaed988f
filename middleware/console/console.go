// Package console, which a minor version may change, answers the questions of operators, and helps or stops a client:
// from Go, or with [Console.Handler] as JSON over HTTP.
//
//	why is a client denied?              Who
//	who is denied, and was not before?   Denied
//	whom would a lower limit deny?       Near
//	which overrides are set, since when? Overrides
//	whom do policies ban by themselves?  Bans
//	help a client                        Grant, Reset
//	stop a client                        Ban, Unban
//
// A [Subject] names a client or a key. The console refuses a key that the policy
// never makes, but cannot know which accounts exist. The error does not quote the
// key, which may be a secret. ip=ADDRESS is also a key of policies that read API
// keys or have a keyfunc.Custom. There it stands for the unknown keys of the address: a
// ban answers them with 429, and an override that is off or in shadow lets the address
// try as many as it likes.
package console

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// A Console acts on the keys of Middlewares. A change takes effect on this
// instance at once, and on others within a second. A Console is safe for
// concurrent use. The zero Console knows no policy.
//
// Errors wrap [ErrNotFound], [ErrBanned], [ErrUneditable], or [algorithms.ErrInvalid] for an
// invalid Subject, or are the limiter's or package overrides'.
type Console struct {
	// Instances are the URLs of the Handlers of all instances, such as http://shop-admin:9090/limits. A host name stands
	// for each of its addresses, as a headless Service of Kubernetes has one for each Pod. With them, Handler answers GET
	// /who, /denied, /near and /overrides for all instances: only an instance that has denied a client knows its tier and its
	// hash. Empty: this instance only. Set it before Handler. The instance that is asked sends the operator's Authorization and Cookie to all
	// of them.
	Instances []string

	all []*ratelimit.Middleware
}

// New returns a console of Middlewares; of policies of one name, the first.
// Bans and overrides need an Options.Overrides of package overrides; an
// override of all policies goes to the first Middleware's.
func New(all ...*ratelimit.Middleware) *Console { return &Console{all: slices.Clone(all)} }

// A Subject is a client, or one of its keys. The zero Subject is invalid.
type Subject struct {
	// Policy is the policy's name, or overrides.All for a ban in all policies. Who
	// takes empty for all policies.
	Policy string

	// Exactly one of these fields names the client.
	Key string     // a text of keyfunc.Text, e.g. "ip=192.0.2.1", or as TopDenied shows it on this instance
	ID  string     // the account, as in keyfunc.Identity
	IP  netip.Addr // the client's address
}

func (s Subject) validate() error {
	named := 0
	for _, given := range []bool{s.Key != "", s.ID != "", s.IP.IsValid()} {
		if given {
			named++
		}
	}
	if named != 1 {
		return fmt.Errorf("ratelimit: %w: want exactly one of key, account (usr) and address (ip)", algorithms.ErrInvalid)
	}
	return nil
}

var (
	// ErrNotFound: there is no such policy, ban or denied key.
	ErrNotFound = errors.New("not found")

	// ErrBanned: a ban of the client still holds.
	ErrBanned = errors.New("banned")

	// ErrUneditable: Options.Overrides is nil or read-only, or a shadow policy
	// should ban.
	ErrUneditable = errors.New("not editable")
)

// A target is a key of a policy, and its override.
type target struct {
	*watched
	key      string
	override *ratelimit.Override // in force; nil: none
	mode     ratelimit.Mode      // in force
}

// target returns the target of a subject whose key the policy may make, or with
// prefix may begin with.
func (c *Console) target(s Subject, prefix bool) (*target, error) {
	w := c.find(s.Policy)
	if w == nil {
		return nil, fmt.Errorf("ratelimit: policy %q: %w", s.Policy, ErrNotFound)
	}
	plain, err := c.reveal(s.Key)
	if err != nil {
		return nil, err
	}
	s.Key = plain
	key, err := w.of(s, prefix)
	if err != nil {
		return nil, err
	}
	return w.target(key), nil
}

func (w *watched) target(key string) *target {
	f := w.inForce(key, "", algorithms.Limit{})
	return &target{w, key, f.Override, f.Mode}
}

func (w *watched) inForce(key, tier string, own algorithms.Limit) ratelimit.InForce {
	f, _ := w.m.InForce(w.policy.Name, key, tier, own)
	return f
}

// reveal returns the key, or the first part of keys, that TopDenied shows as a hash.
func (c *Console) reveal(shown string) (plain string, err error) {
	if !hash.MatchString(shown) {
		return shown, nil
	}
	for p := range c.policies() {
		for _, o := range p.offenders {
			if o.Key == shown {
				return o.Plain, nil
			}
			if firstOf(o.Key) == shown {
				return firstOf(o.Plain), nil
			}
		}
	}
	return "", fmt.Errorf("ratelimit: key %s: %w: this process has not denied it in the last minutes: ask the instance that shows it", shown, ErrNotFound)
}

const rememberedKeys = 128 // TopDenied knows no more

// policies yields all policies; of policies of one name, the first, with the
// offenders of all.
func (c *Console) policies() iter.Seq[*watched] {
	return func(yield func(*watched) bool) {
		known := make(map[string]bool)
		for _, m := range c.all {
			for _, p := range m.Policies() {
				if known[p.Name] {
					continue
				}
				known[p.Name] = true
				if !yield(c.watch(m, &p)) {
					return
				}
			}
		}
	}
}

// find returns the policy of a name, or nil.
func (c *Console) find(name string) *watched {
	for _, m := range c.all {
		for _, p := range m.Policies() {
			if p.Name == name {
				return c.watch(m, &p)
			}
		}
	}
	return nil
}

// one returns the target of a subject that is one key.
func (c *Console) one(s Subject) (*target, error) {
	if s.Key == ratelimit.Everyone {
		return nil, fmt.Errorf("ratelimit: %w: %q is not a client: name one by key, usr or ip", algorithms.ErrInvalid, s.Key)
	}
	return c.target(s, false)
}

func (t *target) ask(ctx context.Context, checks []algorithms.Check) error {
	_, limiter := t.m.Limiter()
	if err := limiter.Allow(ctx, checks); err != nil {
		return fmt.Errorf("ratelimit: %w", err)
	}
	return nil
}
