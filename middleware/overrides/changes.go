// What has changed in a table of overrides.

package overrides

import (
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/middleware"
)

// A change is an override that was set, or cleared if it is nil, by whatever
// program.
type change struct {
	at          time.Time // when this instance learned of it
	policy, key string
	override    *ratelimit.Override // immutable
}

// maxChanges is how many changes a table remembers.
const maxChanges = 32

// changes are the latest changes.
type changes struct {
	mu  sync.Mutex
	all []change // guarded by mu; oldest first
}

func (c *changes) add(policy, key string, o *ratelimit.Override) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all[max(0, len(c.all)-maxChanges+1):], change{time.Now(), policy, key, o})
}

// compare adds the differences between two tables. The end of an override is no
// change.
func (c *changes) compare(old, next *table) {
	for policy, e := range next.policies {
		before := old.policies[policy]
		if before == e {
			continue
		}
		for key, o := range e.all {
			if was := before.get(key); live(o) && (was == nil || !equal(was, o)) {
				c.add(policy, key, o)
			}
		}
	}
	for policy, e := range old.policies {
		after := next.policies[policy]
		if after == e {
			continue
		}
		for key, o := range e.all {
			if live(o) && after.get(key) == nil {
				c.add(policy, key, nil)
			}
		}
	}
}

func equal(a, b *ratelimit.Override) bool {
	return a.Limit == b.Limit && a.Mode == b.Mode && a.Until.Equal(b.Until)
}

// each passes on the changes, oldest first.
func (c *changes) each(yield func(at time.Time, policy, key string, o *ratelimit.Override)) {
	c.mu.Lock()
	all := slices.Clone(c.all)
	c.mu.Unlock()
	for _, one := range all {
		yield(one.at, one.policy, one.key, one.override)
	}
}

// Changes calls yield for each of the latest 32 changes, oldest first: when it
// was made, and the override; nil if it was cleared. The key may name a person.
// Do not change the override.
func (m *Memory) Changes(yield func(at time.Time, policy, key string, o *ratelimit.Override)) {
	m.changes.each(yield)
}

// Changes is [Memory.Changes] for the changes of all instances since the first
// reading. at is when this instance learned of one.
func (r *Redis) Changes(yield func(at time.Time, policy, key string, o *ratelimit.Override)) {
	r.changes.each(yield)
}
