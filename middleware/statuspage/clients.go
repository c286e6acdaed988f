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
}

// A clientKey is a key of a client, and the policy that denied it.
type clientKey struct {
	Policy  string `json:"policy"`
	Key     string `json:"key"`
	Denied  uint64 `json:"denied"`
	Command string `json:"ban,omitempty"` // of Options.Console
}

// clients groups the offenders of all policies.
func clients(policies []policyView, console string) (all []clientView) {
	var of uint64
	for _, p := range policies {
		if len(p.Offenders) > 0 {
			of += p.Offenders[0].Of
		}
		for _, o := range p.Offenders {
			name, _, _ := strings.Cut(o.Key, "|")
			if strings.HasPrefix(name, "const=") {
				continue // all clients together
			}
			i := slices.IndexFunc(all, func(c clientView) bool { return c.Client == name })
			if i < 0 {
				i, all = len(all), append(all, clientView{Client: name, First: o.First, Last: o.Last})
			}
			c := &all[i]
			c.Denied += o.Denied - o.Error
			if o.First.Before(c.First) {
				c.First = o.First
			}
			if o.Last.After(c.Last) {
				c.Last = o.Last
			}
			key := clientKey{Policy: p.Name, Key: o.Key, Denied: o.Denied}
			if !slices.Contains(p.Modes, "shadow") {
				key.Command = banCommand(console, p.Name, o.Key)
			}
			c.Keys = append(c.Keys, key)
		}
	}
	for i := range all {
		all[i].Of = of
	}
	slices.SortStableFunc(all, func(a, b clientView) int { return cmp.Compare(b.Denied, a.Denied) })
	return all[:min(len(all), shownClients)]
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

// banCommand returns a shell command that bans a key; "" without a console. In
// JSON, a quote of a key can be \u0027, so no key ends the shell's quotes.
func banCommand(console, policy, key string) string {
	if console == "" {
		return ""
	}
	body, _ := json.Marshal(map[string]string{"policy": policy, "key": key}) // a map of strings has no error
	return console + "/ban -H 'Content-Type: application/json' -d '" + strings.ReplaceAll(string(body), "'", `\u0027`) + "'"
}
