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
			name := firstOf(o.Key)
			if strings.HasPrefix(name, constant) {
				continue
			}
			i := slices.IndexFunc(all, func(d DeniedClient) bool { return d.Client == name })
			if i < 0 {
				i, all = len(all), append(all, DeniedClient{Client: name, First: o.First.UTC(), Last: o.Last.UTC()})
			}
			d := &all[i]
			d.Denied += o.Denied - o.Error
			if o.First.Before(d.First) {
				d.First = o.First.UTC()
			}
			if o.Last.After(d.Last) {
				d.Last = o.Last.UTC()
			}
			if !slices.Contains(d.Policies, w.policy.Name) {
				d.Policies = append(d.Policies, w.policy.Name)
			}
		}
	}
	all = slices.DeleteFunc(all, func(d DeniedClient) bool { return d.First.Before(since) })
	slices.SortStableFunc(all, func(a, b DeniedClient) int { return cmp.Compare(b.Denied, a.Denied) })
	return all
}
