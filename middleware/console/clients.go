// Who is denied, and who comes near a limit.

package console

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// A Client is a client that policies denied in the last ten to twenty minutes, or whose admitted requests left less than a
// fifth of a limit: a lower limit would deny it.
type Client struct {
	Client   string    `json:"client"`             // the first part of its keys, as TopDenied shows it
	Denied   uint64    `json:"denied,omitempty"`   // requests
	Admitted uint64    `json:"admitted,omitempty"` // requests that left so little
	First    time.Time `json:"first,omitzero"`     // denial after an hour without any; zero if it came near
	Last     time.Time `json:"last"`
	Policies []string  `json:"policies"`
}

// Denied returns the clients whose first denial, after an hour without any, is not
// before since; the zero Time selects all. Clients with most denials come first. It
// leaves out shadow policies, which deny no client, and constant keys.
func (c *Console) Denied(since time.Time) []Client {
	var all []Client
	for w := range c.policies() {
		for _, o := range w.offenders {
			all = w.appendClient(all, Client{Client: o.Key, Denied: o.Denied - o.Error, First: o.First.UTC(), Last: o.Last.UTC()})
		}
	}
	return merge(all, since)
}

// Near returns the clients that come near their limits, the most frequent first. It leaves out shadow policies and
// constant keys.
func (c *Console) Near() []Client {
	var all []Client
	for w := range c.policies() {
		for _, m := range c.all {
			for _, k := range m.Inside().TopNear(w.policy.Name, rememberedKeys) {
				all = w.appendClient(all, Client{Client: k.Key, Admitted: k.Admitted, Last: k.Last.UTC()})
			}
		}
	}
	return merge(all, time.Time{})
}

func (w *watched) appendClient(all []Client, key Client) []Client {
	key.Client, key.Policies = firstOf(key.Client), []string{w.policy.Name}
	if w.policy.Shadow || strings.HasPrefix(key.Client, constant) {
		return all
	}
	return append(all, key)
}

// merge returns one entry for each client that was not denied before an instant.
func merge(all []Client, since time.Time) []Client {
	merged, places := []Client{}, make(map[string]int, len(all))
	for _, other := range all {
		i, known := places[other.Client]
		if !known {
			places[other.Client] = len(merged)
			merged = append(merged, other)
			continue
		}
		c := &merged[i]
		c.Denied, c.Admitted = c.Denied+other.Denied, c.Admitted+other.Admitted
		c.First, c.Last = earlier(c.First, other.First), later(c.Last, other.Last)
		c.Policies = union(slices.Clip(c.Policies), other.Policies...)
	}
	slices.SortStableFunc(merged, func(a, b Client) int { return cmp.Compare(b.Denied+b.Admitted, a.Denied+a.Admitted) })
	return slices.DeleteFunc(merged, func(c Client) bool { return c.First.Before(since) })
}

// earlier returns the earlier of two instants; the zero Time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
