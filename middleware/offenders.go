package middleware

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// An Offender is a key that a policy denies, or that a shadow policy would.
type Offender struct {
	// Key is who it is, as far as the policy's ShowKeys tells.
	Key string

	// Denied is how many of its requests were denied, and Error how many of
	// these may have been of others: at least Denied-Error were its own. Error
	// is 0 as long as few keys are denied.
	Denied, Error uint64

	// Of is how many requests of all keys were denied in the same time.
	Of uint64

	// First and Last are when it was denied; First is not before it was last
	// counted anew.
	First, Last time.Time
}

// TopDenied returns up to n of the keys that a policy has denied most within
// the last ten to twenty minutes, those first that certainly were denied most;
// nil if there is no such policy, or nobody was denied. It remembers 128 keys
// per ten minutes and policy (in all about 50 KB), however many are denied: a key with
// more than a 128th of the denials is among them.
func (m *Middleware) TopDenied(policy string, n int) []Offender {
	if p := m.config.Load().policy(policy); p != nil {
		top, total := p.denied.top(time.Since(m.made))
		var offenders []Offender
		for _, s := range top[:min(max(0, n), len(top))] {
			offenders = append(offenders, Offender{
				Key: p.ShowKeys.show(string(s.key)), Denied: s.count, Error: s.error, Of: total,
				First: m.made.Add(s.first), Last: m.made.Add(s.last),
			})
		}
		return offenders
	}
	return nil
}

// keySeed makes the hashes that tell keys apart, the same in all middlewares, and
// not to be foreseen by who makes up keys.
var keySeed = maphash.MakeSeed()

// noteDenials remembers who was denied.
func (d *decision) noteDenials(m *Middleware, ctx context.Context) {
	now := d.start
	if m.observer == nil {
		now = time.Since(m.made)
	}
	for i := range d.checks {
		c, p := &d.checks[i], d.asked[i].policy
		denies := !c.Decision.Allowed && c.Decision.Source != algorithms.Undecided
		if d.asked[i].ban || c.Op == algorithms.TrialInstead || (!denies && !d.banned && !d.bannedBy(i)) {
			continue
		}
		if burst := c.Limit.Burst(); c.Cost > burst && burst > 0 { // that of nobody is 0
			m.find(costAboveBurst, p)
		}
		hash := d.asked[i].hash
		if m.observer == nil {
			hash = maphash.String(keySeed, c.Key)
		}
		p.denied.add(hash, c.Key, now)
		if d.bannedBy(i) {
			c = &d.checks[i-1]
		}
		m.denials.log(ctx, m.troubles.logger, hash, p, c, now)
	}
}

// A tally counts one policy's denials by key, in two generations: what is asked
// for is who is denied now.
type tally struct {
	sketches [2]sketch
	began    time.Duration // the generation of sketches[0]
}

const generation = 10 * time.Minute

// turn begins a new generation if it is time. The sketches keep their memory.
func (t *tally) turn(now time.Duration) {
	if now-t.began < generation {
		return
	}
	t.sketches[0], t.sketches[1] = t.sketches[1], t.sketches[0]
	t.sketches[0].clear()
	if now-t.began >= 2*generation {
		t.sketches[1].clear()
	}
	t.began = now - now%generation
}

// top returns all keys that are known, those first that were certainly denied
// most, and the number of denials.
func (t *tally) top(now time.Duration) (top []slot, total uint64) {
	t.turn(now)
	recent, past := &t.sketches[0], &t.sketches[1]
	for _, s := range recent.slots {
		if i, ok := past.index[s.hash]; ok {
			before := &past.slots[i]
			s.count, s.error, s.first = s.count+before.count, s.error+before.error, before.first
		} else {
			s.count, s.error = s.count+past.least(), s.error+past.least()
		}
		top = append(top, s.clone())
	}
	for _, s := range past.slots {
		if _, ok := recent.index[s.hash]; !ok {
			s.count, s.error = s.count+recent.least(), s.error+recent.least()
			top = append(top, s.clone())
		}
	}
	slices.SortFunc(top, func(a, b slot) int {
		return cmp.Or(cmp.Compare(b.count-b.error, a.count-a.error), cmp.Compare(b.count, a.count), cmp.Compare(a.hash, b.hash))
	})
	return top, recent.total + past.total
}
