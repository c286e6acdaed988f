// Who comes near a limit.

package console

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// A NearClient is a client whose admitted requests left less than a fifth of a limit in the last ten to twenty minutes.
// A lower limit would deny it.
type NearClient struct {
	Client   string    `json:"client"`   // the first part of its keys, as TopNear shows it
	Admitted uint64    `json:"admitted"` // of these requests
	Last     time.Time `json:"last"`
	Policies []string  `json:"policies"`
}

// Near returns the clients that come near their limits, the most frequent first. It leaves out shadow policies and
// constant keys.
func (c *Console) Near() []NearClient {
	all := []NearClient{}
	for w := range c.policies() {
		if w.policy.Shadow {
			continue
		}
		for _, m := range c.all {
			for _, k := range m.TopNear(w.policy.Name, rememberedKeys) {
				if name := firstOf(k.Key); !strings.HasPrefix(name, constant) {
					all = append(all, NearClient{name, k.Admitted - k.Error, k.Last.UTC(), []string{w.policy.Name}})
				}
			}
		}
	}
	return mergeNear(all)
}

// mergeNear returns one entry for each client.
func mergeNear(all []NearClient) []NearClient {
	return merged(all, func(c *NearClient) string { return c.Client }, func(c, other *NearClient) {
		c.Admitted += other.Admitted
		c.Last = later(c.Last, other.Last)
		c.Policies = union(c.Policies, other.Policies)
	}, func(a, b NearClient) int { return cmp.Compare(b.Admitted, a.Admitted) })
}

// merged adds entries of one client to the first of them, and sorts the rest.
func merged[T any](all []T, client func(*T) string, add func(to, other *T), order func(a, b T) int) []T {
	first := make(map[string]int)
	merged := []T{}
	for i := range all {
		name := client(&all[i])
		if at, ok := first[name]; ok {
			add(&merged[at], &all[i])
			continue
		}
		first[name] = len(merged)
		merged = append(merged, all[i])
	}
	slices.SortStableFunc(merged, order)
	return merged
}

// union returns the policies of both lists, each once.
func union(a, b []string) []string {
	a = slices.Clone(a)
	for _, policy := range b {
		if !slices.Contains(a, policy) {
			a = append(a, policy)
		}
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
