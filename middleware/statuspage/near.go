// The clients that come near their limits.

package statuspage

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/middleware"
)

// A nearView is a client whose admitted requests left less than a fifth of a limit.
type nearView struct {
	Client   string    `json:"client"`
	Admitted uint64    `json:"admitted"` // of these requests
	Last     time.Time `json:"last"`
	Policies []string  `json:"policies"`
	Who      string    `json:"who,omitempty"` // a command; of Options.Console
	Link     string    `json:"-"`             // the same; "" unless the console has a URL
}

// near groups the keys near their limits of all policies that may deny.
func near(middlewares []*ratelimit.Middleware, console string) []nearView {
	all := []nearView{}
	for _, m := range middlewares {
		for _, p := range m.Policies() {
			if p.Shadow {
				continue
			}
			for _, k := range m.TopNear(p.Name, countedOffenders) {
				all = addNear(all, p.Name, &k, console)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b nearView) int { return cmp.Compare(b.Admitted, a.Admitted) })
	return all[:min(len(all), shownClients)]
}

// addNear adds a key to the clients.
func addNear(all []nearView, policy string, k *ratelimit.NearKey, console string) []nearView {
	name, _, _ := strings.Cut(k.Key, "|")
	if strings.HasPrefix(name, "const=") {
		return all // all clients together
	}
	i := slices.IndexFunc(all, func(c nearView) bool { return c.Client == name })
	if i < 0 {
		command, link := whoCommand(console, name)
		i, all = len(all), append(all, nearView{Client: name, Who: command, Link: link})
	}
	c := &all[i]
	c.Admitted += k.Admitted - k.Error
	if k.Last.After(c.Last) {
		c.Last = k.Last.UTC()
	}
	if !slices.Contains(c.Policies, policy) {
		c.Policies = append(c.Policies, policy)
	}
	return all
}
