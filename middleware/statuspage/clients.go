// The clients that were denied most often, whatever policies denied them.

package statuspage

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	countedOffenders = 20 // of each policy
	shownClients     = 10
)

// A clientView is a client: the first part of keys. Several policies may have
// denied it, under several keys.
type clientView struct {
	Client string      `json:"client"`
	Denied uint64      `json:"denied"`
	Of     uint64      `json:"of"` // denials of all clients
	First  time.Time   `json:"first"`
	Last   time.Time   `json:"last"`
	Keys   []clientKey `json:"keys"`
	Who    string      `json:"who,omitempty"` // a command; of Options.Console
	Link   string      `json:"-"`             // the same; "" unless the console has a URL
}

// A clientKey is a key of a client, and the policy that denied it. The first key of
// each policy has the command that bans the client in it.
type clientKey struct {
	Policy  string `json:"policy"`
	Key     string `json:"key"`
	Denied  uint64 `json:"denied"`
	Command string `json:"ban,omitempty"` // of Options.Console
}

// clients groups the offenders of all policies and candidates.
func clients(policies []policyView, console string) (all []clientView) {
	var of uint64
	for _, p := range policies {
		bans := !slices.Contains(p.Modes, "shadow")
		for _, denied := range [][]offenderView{p.Offenders, p.WouldDeny} {
			if len(denied) > 0 {
				of += denied[0].Of
			}
			for _, o := range denied {
				all = addClient(all, p.Name, o, console, bans)
			}
			p.Name, bans = p.Name+" (candidate)", false
		}
	}
	for i := range all {
		all[i].Of = of
	}
	slices.SortStableFunc(all, func(a, b clientView) int { return cmp.Compare(b.Denied, a.Denied) })
	return all[:min(len(all), shownClients)]
}

// addClient adds an offender to the clients.
func addClient(all []clientView, policy string, o offenderView, console string, bans bool) []clientView {
	name, _, _ := strings.Cut(o.Key, "|")
	if strings.HasPrefix(name, "const=") {
		return all // all clients together
	}
	i := slices.IndexFunc(all, func(c clientView) bool { return c.Client == name })
	if i < 0 {
		command, link := whoCommand(console, name)
		i, all = len(all), append(all, clientView{Client: name, First: o.First, Last: o.Last, Who: command, Link: link})
	}
	c := &all[i]
	c.Denied += o.Denied - o.Error
	if o.First.Before(c.First) {
		c.First = o.First
	}
	if o.Last.After(c.Last) {
		c.Last = o.Last
	}
	key := clientKey{Policy: policy, Key: o.Key, Denied: o.Denied}
	if bans && !slices.ContainsFunc(c.Keys, func(k clientKey) bool { return k.Policy == policy }) {
		key.Command = banCommand(console, policy, name)
	}
	c.Keys = append(c.Keys, key)
	return all
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
