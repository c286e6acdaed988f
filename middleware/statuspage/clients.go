// The clients that were denied most often, or came near their limits most often, whatever policies counted them.

package statuspage

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/middleware"
)

const (
	countedKeys  = 20 // of each policy
	shownClients = 10
)

// A clientView is a client: the first part of keys. Several policies may have
// counted it, under several keys.
type clientView struct {
	Client   string      `json:"client"`
	Denied   uint64      `json:"denied,omitempty"`   // requests
	Admitted uint64      `json:"admitted,omitempty"` // requests that left less than a fifth of a limit
	Of       uint64      `json:"of,omitempty"`       // denials of all clients
	Last     time.Time   `json:"last"`
	Keys     []clientKey `json:"keys"`
	Who      string      `json:"who,omitempty"` // a command; of Options.Console
	Link     string      `json:"-"`             // the same; "" unless the console has a URL
}

// A clientKey is a key of a client, and the policy that counted it. The first denied key of
// each policy has the command that bans the client in it.
type clientKey struct {
	Policy  string `json:"policy"`
	Key     string `json:"key"`
	Denied  uint64 `json:"denied,omitempty"`
	Command string `json:"ban,omitempty"` // of Options.Console
}

type clients struct {
	console string
	all     []clientView
}

// denied returns the clients that policies deny, or their candidates would.
func denied(middlewares []*ratelimit.Middleware, console string) []clientView {
	c, of := clients{console: console}, uint64(0)
	for _, m := range middlewares {
		for _, p := range m.Policies() {
			of += c.deniedKeys(p.Name, m.TopDenied(p.Name, countedKeys), !p.Shadow)
			of += c.deniedKeys(p.Name+" (candidate)", m.TopDenied(p.Name+"~candidate", countedKeys), false)
		}
	}
	for i := range c.all {
		c.all[i].Of = of
	}
	return c.most()
}

// deniedKeys adds the keys that a policy denied most often. It returns the denials of all keys.
func (c *clients) deniedKeys(policy string, top []ratelimit.Offender, bans bool) (of uint64) {
	for _, o := range top {
		of = o.Of
		if k := c.key(policy, o.Key, o.Denied-o.Error, 0, o.Last); k != nil && bans {
			k.Command = banCommand(c.console, policy, firstOf(o.Key))
		}
	}
	return of
}

// near returns the clients that come near the limits of policies that may deny.
func near(middlewares []*ratelimit.Middleware, console string) []clientView {
	c := clients{console: console}
	for _, m := range middlewares {
		for _, p := range m.Policies() {
			if p.Shadow {
				continue
			}
			for _, k := range m.Inside().TopNear(p.Name, countedKeys) {
				c.key(p.Name, firstOf(k.Key), 0, k.Admitted, k.Last)
			}
		}
	}
	return c.most()
}

// key adds requests of a key. It returns the key if it is the first of its client in the policy.
func (c *clients) key(policy, key string, denied, admitted uint64, last time.Time) *clientKey {
	name := firstOf(key)
	if strings.HasPrefix(name, "const=") {
		return nil // all clients together
	}
	i := slices.IndexFunc(c.all, func(v clientView) bool { return v.Client == name })
	if i < 0 {
		command, link := whoCommand(c.console, name)
		i, c.all = len(c.all), append(c.all, clientView{Client: name, Who: command, Link: link})
	}
	v := &c.all[i]
	v.Denied, v.Admitted = v.Denied+denied, v.Admitted+admitted
	if last.After(v.Last) {
		v.Last = last.UTC()
	}
	if i := slices.IndexFunc(v.Keys, func(k clientKey) bool { return k.Policy == policy && k.Key == key }); i >= 0 {
		v.Keys[i].Denied += denied
		return nil
	}
	first := !slices.ContainsFunc(v.Keys, func(k clientKey) bool { return k.Policy == policy })
	v.Keys = append(v.Keys, clientKey{Policy: policy, Key: key, Denied: denied})
	if !first {
		return nil
	}
	return &v.Keys[len(v.Keys)-1]
}

func (c *clients) most() []clientView {
	slices.SortStableFunc(c.all, func(a, b clientView) int { return cmp.Compare(b.Denied+b.Admitted, a.Denied+a.Admitted) })
	return append([]clientView{}, c.all[:min(len(c.all), shownClients)]...)
}

func firstOf(key string) string {
	first, _, _ := strings.Cut(key, "|")
	return first
}

// Shown returns the rest of the key as people read it.
func (k clientKey) Shown() string {
	_, rest, _ := strings.Cut(k.Key, "|")
	rest = strings.ReplaceAll(rest, "rt=", "")
	if plain, err := url.PathUnescape(rest); err == nil {
		return plain
	}
	return rest
}

// whoCommand returns a shell command that asks why a client is denied, and its URL if
// the console's command ends with one; "" without a console. In a query, no key has a
// quote.
func whoCommand(console, client string) (command, link string) {
	if console == "" {
		return "", ""
	}
	path := "/who?key=" + url.QueryEscape(client)
	base := console[strings.LastIndexByte(console, ' ')+1:]
	if u, err := url.Parse(base); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		link = base + path
	}
	return console + "'" + path + "'", link
}

// banCommand returns a shell command that bans a client in a policy; "" without a
// console. In JSON, a quote of a key can be \u0027, so no key ends the shell's quotes.
func banCommand(console, policy, client string) string {
	if console == "" {
		return ""
	}
	body, _ := json.Marshal(map[string]string{"policy": policy, "key": client}) // a map of strings has no error
	return console + "/ban -H 'Content-Type: application/json' -d '" + strings.ReplaceAll(string(body), "'", `\u0027`) + "'"
}
