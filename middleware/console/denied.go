// Who is denied.

package console

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// A DeniedClient is a client that policies denied in the last ten to twenty minutes.
type DeniedClient struct {
	Client   string    `json:"client"` // the first part of its keys, as TopDenied shows it
	Denied   uint64    `json:"denied"` // requests
	First    time.Time `json:"first"`  // denial after an hour without any
	Last     time.Time `json:"last"`
	Policies []string  `json:"policies"`
}

// Denied returns the clients whose first denial, after an hour without any, is not
// before since; the zero Time selects all. Clients with most denials come first. It
// leaves out shadow policies, which deny no client, and constant keys.
func (c *Console) Denied(since time.Time) []DeniedClient {
	all := []DeniedClient{}
	for w := range c.policies() {
		if w.policy.Shadow {
			continue
		}
		for _, o := range w.offenders {
			if name := firstOf(o.Key); !strings.HasPrefix(name, constant) {
				all = append(all, DeniedClient{name, o.Denied - o.Error, o.First.UTC(), o.Last.UTC(), []string{w.policy.Name}})
			}
		}
	}
	return mergeDenied(all, since)
}

// mergeDenied returns one entry for each client that was not denied before an instant.
func mergeDenied(all []DeniedClient, since time.Time) []DeniedClient {
	all = merged(all, func(c *DeniedClient) string { return c.Client }, func(c, other *DeniedClient) {
		c.Denied += other.Denied
		if other.First.Before(c.First) {
			c.First = other.First
		}
		c.Last = later(c.Last, other.Last)
		c.Policies = union(c.Policies, other.Policies)
	}, func(a, b DeniedClient) int { return cmp.Compare(b.Denied, a.Denied) })
	return slices.DeleteFunc(all, func(d DeniedClient) bool { return d.First.Before(since) })
}
