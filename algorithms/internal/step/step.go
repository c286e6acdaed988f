// Package step decides: pure steps over the states of keys, in integers.
//
// Instants are µs since the Unix epoch, and only arguments: no step reads a clock. Quantities are units. Package lua
// holds the twin of each algorithm in the file of the same base name.
//
//	step.go    State, Limit, and the interface of an algorithm
//	table.go   the algorithms, one row each
//	call.go    several checks at once, all or nothing; settle.go settlements
//	pair.go    a take that depends on the take before it
//	lone.go    a take that is alone in its call
//	figures.go the figures of a decision, computed from a store's answer
//	share.go   the part of a limit that one instance admits alone
//	key.go     the identity of a key
//	exact.go   arithmetic beyond 64 bits
package step

import "slices"

// tolerance (µs) is how far a stored instant may lie ahead of the clock. Further ahead, the clock must have stepped
// back, and the state is repaired. Within the tolerance, a late caller is judged at the stored instant, so that time
// never moves backwards.
const tolerance = 100_000

// Bounds of limits. They keep every product in the arithmetic exact, in int64 and in the doubles of Redis's Lua.
const (
	maxRateRequests   = 1_000_000_000     // of algorithms that multiply units by time
	maxWindowRequests = 1_000_000_000_000 // of windows, which only add and compare units
	maxLogRequests    = 10_000            // of algorithms with an entry per request
	maxRateUnits      = 1 << 30
	MaxUnits          = 1 << 40   // the most that any state holds, and the largest cost
	MaxWindow         = 1<<45 - 1 // µs: 407 days
	MaxExact          = 1 << 53   // doubles are exact below
)

// A step is an algorithm: how operations change one state under one limit.
type step interface {
	// at brings a stored state to now under the limit. It reports whether the result must be stored even if nothing is
	// charged, as after a repair or when a log was trimmed.
	at(s State, now int64, l *Limit) (State, bool)

	// undo takes off units that the receipt's take charged. stored is the state before at, and s after it. undo returns
	// s if it credits nothing.
	undo(stored, s State, units int64, r *Receipt, l *Limit) State

	// grant takes units off a stored state, at the state's own instant.
	grant(s State, units int64) State
}

// A refiller is an algorithm of constant size.
type refiller interface {
	// freeAt returns the instant at which units fit that do not fit now, in a state that at returned.
	freeAt(s State, units int64, l *Limit) int64
}

// A weigher is an algorithm that uses another part of the burst than N.
type weigher interface {
	// used is the part of the burst in use, in a state that at returned.
	used(s State, l *Limit) int64
}

// A lister is an algorithm that holds its units one by one.
type lister interface {
	// charge adds units to a state that at returned. id is the take's, for algorithms that distinguish takes.
	charge(s State, now, units, id int64, l *Limit) State

	// answer returns the integers from which figures are computed.
	answer(s State, need int64, l *Limit) Answer
}

// A delayer is an algorithm that serves takes after it admits them.
type delayer interface {
	// delayUntil returns the instant at which a take that has just been charged is to be served.
	delayUntil(s State, units int64, l *Limit) int64
}

// A renewer is an algorithm whose takes end unless they are renewed.
type renewer interface {
	// renew moves the units of the receipt's take to now, in a state that at returned. It holds units again that have
	// ended, up to the cap.
	renew(s State, now int64, r *Receipt, l *Limit) State
}

// counted has the grant of algorithms of constant size.
type counted struct{}

func (counted) grant(s State, units int64) State {
	if s.N -= units; s.N <= 0 {
		return State{T: s.T}
	}
	return s
}

// A State is the contents of one key: n units are in use. It has four fields because Go keeps no larger struct in
// registers.
type State struct {
	T    int64 // buckets: n units were in use at T + F/r; otherwise the last write
	N    int64
	F    int64 // buckets: the fraction of T, in parts of r; counters: the previous window
	More *More // nil for algorithms of constant size
}

// More holds the units of a state one by one. Charges change it in place, and return the state that goes with it.
type More struct {
	entries []entry // of sliding window logs
	holds   []hold  // of concurrent requests
}

// Empty reports whether no unit counts. An empty state is not stored.
func (s State) Empty() bool { return s.N == 0 && s.F == 0 }

// copied returns the state with units of its own, which later operations may change.
func (s State) copied() State {
	if s.More != nil {
		s.More = &More{slices.Clone(s.More.entries), slices.Clone(s.More.holds)}
	}
	return s
}

// A Limit is a limit in the integers of the arithmetic: r units come back every w µs (in lowest terms), so one unit
// every a + b/r µs.
type Limit struct {
	Row      *Row // nil: the zero Limit
	Scope    *Row // the row whose tag is in stored keys; of a share, the whole limit's row
	R, W     int64
	A, B     int64
	Burst    int64 // of windows: the requests
	Cap      int64 // how far Force may fill a state
	Most     int64 // the largest cost; a share admits more than its burst from an empty state
	Requests int64
	Window   int64 // µs; of a calendar, the longest period
	Calendar *Calendar
}

// NewLimit returns the limit of so many requests per window, in µs.
func NewLimit(row *Row, requests, window int64) Limit {
	return Limit{Row: row, Scope: row, Requests: requests, Window: window, Burst: requests}.Reduced()
}

// Reduced returns l with all fields that follow from its row, requests, window and burst. It accepts invalid limits.
func (l Limit) Reduced() Limit {
	if l.Requests > 0 && l.Window > 0 {
		g := gcd(l.Requests, l.Window)
		l.R, l.W = l.Requests/g, l.Window/g
		l.A, l.B = l.W/l.R, l.W%l.R
	}
	if l.Most = l.Burst; l.Row != nil {
		l.Cap = min(2*l.Burst, l.Row.MaxUnits)
	}
	return l
}

// Exact reports whether all arithmetic of a bucket stays below 2^53.
func (l *Limit) Exact() bool { return l.R <= (MaxExact-1)/(l.Cap+1) }

// fits reports whether a need fits beside the used units.
func (l *Limit) fits(used, need int64) bool {
	return used+need <= l.Burst || (used == 0 && need <= l.Most)
}

// fitsReserve reports whether a need that does not exceed the burst fits beside the used units if the reserve counts.
func (l *Limit) fitsReserve(used, need int64) bool {
	return need <= l.Most && used+need <= l.Burst+l.reserve()
}

// reserve is how many units more than the burst a TakeReserved may use.
func (l *Limit) reserve() int64 { return min(l.Burst, l.Cap-l.Burst) }

// Fits reports whether a need fits into a state that At returned.
func (l *Limit) Fits(s State, need int64) bool { return l.fits(l.Used(s), need) }

// At brings a stored state to now.
func (l *Limit) At(s State, now int64) State {
	s, _ = l.Row.step.at(s, now, l)
	return s
}

// Force adds units to a state that At returned, also units that do not fit: into debt, up to the cap.
func (l *Limit) Force(s State, now, units int64) State { return l.force(s, now, units, 0) }

func (l *Limit) force(s State, now, units, id int64) State {
	if units = min(units, l.Cap-s.N); units <= 0 {
		return s
	}
	return l.charge(s, now, units, id)
}

// backfill charges as many units as fit, to a state that At returned.
func (l *Limit) backfill(s State, now, units, id int64) State {
	if units = min(units, l.Burst-l.Used(s)); units <= 0 {
		return s
	}
	return l.charge(s, now, units, id)
}

// Used returns the part of the burst in use, in a state that At returned.
func (l *Limit) Used(s State) int64 {
	if w := l.Row.weigher; w != nil {
		return w.used(s, l)
	}
	return s.N
}

// charge adds units to a state that At returned. id is the take's, for algorithms that distinguish takes.
func (l *Limit) charge(s State, now, units, id int64) State {
	if list := l.Row.lister; list != nil {
		return list.charge(s, now, units, id, l)
	}
	s.N += units
	return s
}

// freeAt returns the instant at which units fit that do not fit now. units is 1, the burst, or the need of the answer.
func (l *Limit) freeAt(a *Answer, units int64) int64 {
	if r := l.Row.refiller; r != nil {
		return r.freeAt(State{T: a.T, N: a.N, F: a.F}, units, l)
	}
	return a.listedFreeAt(units, l)
}

// answer returns the integers from which figures are computed.
func (l *Limit) answer(s State, need int64) Answer {
	if list := l.Row.lister; list != nil {
		return list.answer(s, need, l)
	}
	return Answer{T: s.T, N: s.N, F: s.F}
}

// FullAt returns the instant at which a state that At returned is empty again; 0 if it is.
func (l *Limit) FullAt(s State) int64 {
	a := l.answer(s, 0)
	return l.fullAt(&a)
}

// Granted takes units off a state, at the state's own instant.
func (l *Limit) Granted(s State, units int64) State {
	if s.Empty() {
		return s
	}
	return l.Row.step.grant(s, units)
}

// Turned returns how many windows ended from one instant to another. More than two periods of a calendar count as two,
// which pay off any debt.
func (l *Limit) Turned(from, to int64) int64 {
	if l.Calendar != nil {
		return l.Calendar.turned(from, to)
	}
	return to/l.Window - from/l.Window
}

// Turn returns the end of the k-th window. The first window is the window of the instant at.
func (l *Limit) Turn(at, k int64) int64 {
	if l.Calendar != nil {
		return l.Calendar.turn(at, k)
	}
	return (at/l.Window + k) * l.Window
}

// repaired returns the instant at which to judge a state that was written at t, and whether t lies so far ahead that
// the clock must have stepped back. The state keeps its units then, so that a step back opens no second quota.
func repaired(t, now int64) (int64, bool) {
	if t > now+tolerance {
		return now, true
	}
	return t, false
}
