// Package step decides: pure steps over the states of keys, in integers.
//
// Instants are µs since the Unix epoch, and only arguments: no step reads a clock. Quantities are units. Package lua
// holds the twin of each algorithm in the file of the same base name.
//
//	step.go    State, Limit, and the interface of an algorithm
//	table.go   the algorithms, one row each
//	call.go    several checks at once, all or nothing; settle.go settlements
//	lone.go    a take that is alone in its call
//	figures.go the figures of a decision, computed from a store's answer
//	share.go   the part of a limit that one instance admits alone
//	key.go     the identity of a key
//	exact.go   arithmetic beyond 64 bits
package step

// tolerance (µs) is how far a stored instant may lie ahead of the clock. Further ahead, the clock must have stepped
// back, and the state is repaired. Within the tolerance, a late caller is judged at the stored instant, so that time
// never moves backwards.
const tolerance = 100_000

// Bounds of limits. They keep every product in the arithmetic exact, in int64 and in the doubles of Redis's Lua.
const (
	MaxRequests    = 1_000_000_000
	maxLogRequests = 10_000    // of algorithms with an entry per request
	MaxWindow      = 1<<45 - 1 // µs: 407 days
	MaxUnits       = 1 << 30   // the most that a state holds, and the largest cost
	MaxExact       = 1 << 53   // doubles are exact below
)

// A step is an algorithm: how operations change one state under one limit.
type step interface {
	// at brings a stored state to now under the limit. It reports whether the result must be stored even if nothing is
	// charged, as after a repair or when a log was trimmed.
	at(s State, now int64, l *Limit) (State, bool)

	// used is the part of the burst in use, in a state that at returned.
	used(s State, l *Limit) int64

	// charge adds units to a state that at returned. id is the take's, for algorithms that distinguish takes.
	charge(s State, now, units, id int64, l *Limit) State

	// grant takes units off a state that at returned.
	grant(s State, units int64, l *Limit) State

	// undo takes off units that the receipt's take charged, unless they have refilled or rolled out of the window.
	// stored is the state before at. undo may return the state of an earlier instant.
	undo(stored, s State, now, units int64, r *Receipt, l *Limit) State

	// backfill charges at an earlier instant, as many units as fit.
	backfill(s State, now, units, at int64, l *Limit) State

	// answer returns the integers from which figures are computed.
	answer(s State, need int64, l *Limit) Answer

	// freeAt returns the instant at which units fit that do not fit now. units is 1, the burst, or the need of the
	// answer.
	freeAt(a Answer, units int64, l *Limit) int64
}

// A delayer is an algorithm that serves takes after it admits them.
type delayer interface {
	// delayUntil returns the instant at which a take that has just been
	// charged is to be served.
	delayUntil(a Answer, units int64, l *Limit) int64
}

// A renewer is an algorithm whose takes end unless they are renewed.
type renewer interface {
	// renew moves the units of the receipt's take to now, in a state that at returned. It holds units again that have
	// ended, up to the cap.
	renew(s State, now int64, r *Receipt, l *Limit) State
}

// A noter is an algorithm that notes its rate for a charge that may be returned.
type noter interface {
	// note returns the state of a charge with the rate.
	note(s State, l *Limit) State
}

// An entryLister is an algorithm whose state knows when its units were admitted.
type entryLister interface {
	entries(s State, l *Limit) []Entry
}

// A State is the contents of one key: n units are in use. It has four fields because Go keeps no larger struct in
// registers.
type State struct {
	T    int64 // buckets: n units were in use at T + F/r; otherwise the last write
	N    int64
	F    int64 // buckets: the fraction of T, in parts of r; counters: the previous window
	More *More // nil for most
}

// More holds fields that few states need. Charges change it in place, and return the state that goes with it.
type More struct {
	entries []Entry // of sliding window logs: the units one by one
	holds   []hold  // of concurrent requests, in the place of entries

	last int64 // buckets: the instant of the last charge, if it came long after T
	era  int64 // the instant at which the units before it were forgotten; 0: never
	rate *rate // buckets: nil unless a charge may be returned, or units were taken off in another order
}

// A rate is a bucket's note of its rate.
type rate struct {
	shift int64 // µs by which T has left the instants at which it drained, modulo w; w itself unless the state is mixed
	r, w  int64
}

// An Entry is units that were admitted at one instant.
type Entry struct{ At, Units int64 }

// Spent reports whether any unit counts.
func (s State) Spent() bool { return s.N != 0 || s.F != 0 }

// Empty reports whether the state need not be stored.
func (s State) Empty() bool { return !s.Spent() && s.Era() == 0 }

// Era returns the era of the state; 0 is the first. Receipts of an earlier era give nothing back.
func (s State) Era() int64 {
	if s.More == nil {
		return 0
	}
	return s.More.era
}

// rate returns the noted rate of a bucket, zero if there is none.
func (s State) rate() rate {
	if s.More == nil || s.More.rate == nil {
		return rate{}
	}
	return *s.More.rate
}

// Lingers reports whether the state lives no shorter than the state before it: receipts of another era or rate may come.
func (s State) Lingers() bool { return s.Era() > 0 || s.rate().w > 0 }

// mixed reports whether units were taken off a bucket in another order than last in, first out.
func (s State) mixed() bool {
	noted := s.rate()
	return noted.shift < noted.w
}

// equal reports whether a settlement has changed nothing between two states of a key.
func (s State) equal(other State) bool {
	return s.T == other.T && s.N == other.N && s.F == other.F && s.Era() == other.Era()
}

// emptied returns a bucket without units, which remembers only its era.
func (s State) emptied(now int64) State {
	empty := State{T: now}
	if era := s.Era(); era > 0 {
		empty.More = &More{era: era}
	}
	return empty
}

func (s State) last() int64 {
	if s.More == nil {
		return 0
	}
	return s.More.last
}

// reborn returns the state in a new era, which begins at an instant. Each era of a
// key has an instant of its own.
func (s State) reborn(instant int64) State {
	s.More = &More{era: min(max(instant, s.Era()+1), MaxExact-1)}
	return s
}

// lowered returns the state with at most limit units and with at most limit units in the window before, in a new era
// if it had more.
func (s State) lowered(limit, now int64) State {
	if s.N <= limit && s.F <= limit {
		return s
	}
	s.N, s.F = min(s.N, limit), min(s.F, limit)
	return s.reborn(now)
}

// forgotten returns the state of a key after its units are forgotten at now.
func (s State) forgotten(now int64) State { return State{T: now, More: s.More}.reborn(now) }

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
	l.Cap, l.Most = min(2*l.Burst, MaxUnits), l.Burst
	return l
}

// Exact reports whether all arithmetic of a bucket stays below 2^53.
func (l *Limit) Exact() bool { return l.R <= (MaxExact-1)/(l.Cap+1) }

// highest returns the highest cap with which the arithmetic is exact.
func (l *Limit) highest() int64 { return max(l.Cap, min(MaxUnits, (MaxExact-1)/max(1, l.R)-1)) }

// fits reports whether a need fits beside the used units.
func (l *Limit) fits(used, need int64) bool {
	return used+need <= l.Burst || (used == 0 && need <= l.Most)
}

// At brings a stored state to now.
func (l *Limit) At(s State, now int64) State {
	s, _ = l.Row.step.at(s, now, l)
	return s
}

// Charge adds units to a state that At returned.
func (l *Limit) Charge(s State, now, units int64) State {
	return l.Row.step.charge(s, now, units, 0, l)
}

// Force is Charge for units that need not fit: into debt, up to the cap.
func (l *Limit) Force(s State, now, units int64) State { return l.force(s, now, units, 0) }

func (l *Limit) force(s State, now, units, id int64) State {
	if units = min(units, l.Cap-s.N); units <= 0 {
		return s
	}
	return l.Row.step.charge(s, now, units, id, l)
}

// FullAt returns the instant at which a state that At returned is empty again; 0 if it is. A state that only remembers
// its era lives until all units have refilled that could have been in use.
func (l *Limit) FullAt(s State) int64 {
	if !s.Spent() && s.Era() > 0 {
		s.N = l.Cap
	}
	a := l.Row.step.answer(s, 0, l)
	return l.fullAt(&a)
}

// Entries returns the instants at which the units of a state that At returned were admitted, oldest first, as exactly
// as the algorithm needs them.
func (l *Limit) Entries(s State) []Entry {
	if d, ok := l.Row.step.(entryLister); ok {
		return d.entries(s, l)
	}
	return []Entry{{s.T, s.N}}
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
