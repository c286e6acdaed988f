package algorithms

import "sync"

// maxOwed bounds the keys of a ledger. What is admitted of others, and of keys
// longer than maxKept, is not told.
const maxOwed = 100_000

// A ledger keeps what was admitted without the primary, and surely not charged
// there, until the primary can be told. It counts as the primary would: what has
// refilled or rolled away meanwhile is not owed any more.
type ledger struct {
	mu      sync.Mutex
	keys    map[identity]*debt
	telling int // keys that were popped, and of which the primary is being told
}

// A debt is what is owed of one key.
type debt struct {
	identity
	whole   Limit // as the primary has it
	counts  Limit // that the state counts under
	charged int64 // units, of which a bucket's state may hold more: it began warm
	state   state
}

func newLedger() *ledger { return &ledger{keys: make(map[identity]*debt)} }

// record notes a check that the secondary has charged, a take or a force, under
// the limit that it had there. What runs here now is returned here: the primary
// need not know.
func (l *ledger) record(c *Check, local Limit, now int64) {
	units := c.units()
	if units == 0 || !c.chargedLocally() || len(c.Key) > maxKept || c.Limit.algorithm.Concurrent() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	d, ok := l.keys[identityOf(c)]
	if !ok {
		if !l.room(now) {
			return
		}
		d = &debt{identity: identityOf(c).clone()}
		l.keys[d.identity] = d
	}
	d.whole, d.counts = c.Limit, c.Limit
	d.charged += units
	if c.Limit.algorithm.Continuous() {
		// A bucket's share drains at the rate of the share, and what the
		// primary knows of, or was told, drains first.
		d.counts = local
		s := c.bucket(now, &local.terms)
		newer := s.t > d.state.t || (s.t == d.state.t && s.n > d.state.n) // else another overtook it
		if newer || c.Op == Force {
			d.state = s
		}
		return
	}
	// The instants at which windows forget are those of the whole limit.
	t := d.at(now)
	d.state = table[d.counts.algorithm].step.force(d.state, now, units, 0, &t)
}

func (c *Check) chargedLocally() bool {
	if c.Op == Force {
		return c.Decision.Source == Local && c.Limit.algorithm != algorithmNobody
	}
	return c.Decision.Receipt.units > 0
}

// bucket returns the state of a bucket that the secondary has charged. A force
// has no receipt; but a bucket that has drained when the decision says so holds
// the same, but for a unit or those of a µs. Its instant is a few µs early, so
// that any later receipt is newer.
func (c *Check) bucket(now int64, l *terms) state {
	if c.Op != Force {
		r := &c.Decision.Receipt
		return state{t: r.t, n: r.n, f: r.f}
	}
	left := c.Decision.ResetAfter.Microseconds()
	n, _ := mulDiv(max(0, left-1), l.r, l.w)
	n = min(n, l.cap-1) + 1
	return state{t: now + left - after(0, 0, n, l) - 1, n: n}
}

// unrecord notes that units of a check were returned.
func (l *ledger) unrecord(c *Check, units int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d, ok := l.keys[identityOf(c)]; ok {
		d.charged = max(0, d.charged-units)
	}
}

func (l *ledger) forget(c *Check) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.keys, identityOf(c))
}

// room makes room for one more key. If there is none, it forgets one that owes
// nothing any more, if one of the few that it looks at does.
func (l *ledger) room(now int64) bool {
	if len(l.keys) < maxOwed {
		return true
	}
	looked := 0
	for key, d := range l.keys { // begins anywhere
		if d.at(now); d.state.empty() {
			delete(l.keys, key)
			return true
		}
		if looked++; looked == 4 {
			break
		}
	}
	return false
}

// pop removes up to limit keys, and returns what is owed of them. They count as
// owed until told says how many are done with.
func (l *ledger) pop(limit int) (debts []*debt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, d := range l.keys {
		if len(debts) == limit {
			break
		}
		delete(l.keys, key)
		debts = append(debts, d)
	}
	l.telling += len(debts)
	return debts
}

func (l *ledger) told(keys int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.telling -= keys
}

// restore puts back what the primary was not told of.
func (l *ledger) restore(d *debt, now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if newer, ok := l.keys[d.identity]; ok {
		d.add(newer, now)
	}
	l.keys[d.identity] = d
}

// add adds what is owed of the same key since. Windows hold it as of now, which
// is a moment late.
func (d *debt) add(newer *debt, now int64) {
	d.charged += newer.charged
	d.whole, d.counts = newer.whole, newer.counts
	if d.counts.algorithm.Continuous() { // the secondary's state, which has all
		d.state = newer.state
		return
	}
	d.at(now)
	d.state = table[d.counts.algorithm].step.charge(d.state, now, newer.charged, 0)
}

func (l *ledger) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.keys) + l.telling
}

func (d *debt) at(now int64) terms {
	t := d.counts.terms
	d.state, _ = table[d.counts.algorithm].step.at(d.state, now, &t)
	return t
}

// logEntries bounds the entries that a log's debt is told in.
const logEntries = 64

// checks returns what the primary is to be told, oldest first: when units were
// admitted, as far as that matters, in µs of this clock.
func (d *debt) checks(now int64) (checks []Check) {
	t, left := d.at(now), d.charged
	add := func(units, at int64) {
		if units = min(units, left); units > 0 {
			checks = append(checks, Check{
				Policy: d.policy, Key: d.key, Limit: d.whole, Op: backfill, Cost: units,
				Decision: Decision{Receipt: Receipt{at: at}},
			})
			left -= units
		}
	}
	s := d.state
	switch d.counts.algorithm {
	case algorithmSlidingWindowCounter:
		add(s.f, s.t-t.window)
		add(s.n, s.t)
	case algorithmSlidingWindowLog:
		if s.log == nil {
			break
		}
		// Several entries are told as of the oldest, so that none lasts longer.
		each := (len(s.log.entries) + logEntries - 1) / logEntries
		for i := 0; i < len(s.log.entries); i += each {
			var units int64
			for _, e := range s.log.entries[i:min(i+each, len(s.log.entries))] {
				units += e.units
			}
			add(units, s.log.entries[i].at)
		}
	default:
		if s.n > d.charged { // the unit that drains by now is not of these
			s.t = now
		}
		add(s.n, s.t)
	}
	return checks
}
