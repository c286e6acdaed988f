// The algorithms. A row holds everything that other code needs to know about
// one.

package step

// A Row is one algorithm.
type Row struct {
	Name string // in printed limits
	Tag  string // in stored keys, two letters
	ID   byte   // its place among Rows, from 1: for stores within this process only
	step step   // nil: denies everything, without a state

	// What the step is beside that; nil for most.
	refiller refiller
	weigher  weigher
	lister   lister
	delayer  delayer
	renewer  renewer

	Refill      Refill
	Calendar    bool   // its windows are periods of a calendar, of different lengths
	MaxRequests int64  // the most of a limit, and of a bucket's burst
	MaxUnits    int64  // the most that a state holds
	Beyond      string // the end of the error about more requests: another algorithm to use

	Counted      bool // its state has a constant size, and is a string in Redis
	ChargedLater bool // units may be charged a moment after they were admitted
	Remembered   bool // a denial holds until its RetryAfter, unless a settlement comes
	Owed         bool // units admitted without the store count there afterwards
	Reserves     bool // debt is paid off at the limit's rate, so takes may use a reserve
	TakesApart   bool // its receipts find their own units again, by an id

	// Weight is the cost of a check to the store. The unit is a take that is
	// alone on its key, which takes 3 to 4 µs.
	Weight func(l *Limit, op Op, cost int64) int
}

// A Refill says when units come back.
type Refill uint8

const (
	// Never: there are no units.
	Never Refill = iota
	// Continuously: one by one, at the limit's rate.
	Continuously
	// Sliding: a window after they were taken, for each key at its own instant.
	Sliding
	// AtTurns: when a window of the clock or the calendar turns, for all keys at
	// once.
	AtTurns
	// OnReturn: when the caller gives them back.
	OnReturn
)

// Rows are all algorithms.
var Rows []*Row

// The algorithms. The order means nothing outside of this process.
var (
	Nobody = row(Row{Name: "nobody", Tag: "no", Remembered: true})

	TokenBucket = row(Row{
		Name: "token-bucket", Tag: "tb", step: tokenBucket{}, Refill: Continuously, MaxRequests: maxRateRequests, MaxUnits: maxRateUnits,
		Counted: true, ChargedLater: true, Remembered: true, Owed: true, Reserves: true, Weight: countedWeight,
	})
	LeakyBucket = row(Row{
		Name: "leaky-bucket", Tag: "lb", step: leakyBucket{}, Refill: Continuously, MaxRequests: maxRateRequests, MaxUnits: maxRateUnits,
		Counted: true, Remembered: true, Owed: true, Weight: countedWeight,
	})
	SlidingWindowCounter = row(Row{
		Name: "sliding-window-counter", Tag: "sc", step: slidingWindowCounter{}, Refill: Sliding, MaxRequests: maxRateRequests, MaxUnits: maxRateUnits,
		Counted: true, ChargedLater: true, Remembered: true, Owed: true, Weight: countedWeight,
	})
	SlidingWindowLog = row(Row{
		Name: "sliding-window-log", Tag: "sl", step: slidingWindowLog{}, Refill: Sliding, MaxRequests: maxLogRequests, MaxUnits: maxRateUnits,
		Beyond: "; use sliding-window-counter", Remembered: true, Owed: true, Weight: logWeight,
	})
	FixedWindow = row(Row{
		Name: "fixed-window", Tag: "fw", step: fixedWindow{}, Refill: AtTurns, MaxRequests: maxWindowRequests, MaxUnits: MaxUnits,
		Counted: true, ChargedLater: true, Remembered: true, Owed: true, Reserves: true, Weight: countedWeight,
	})
	CalendarWindow = row(Row{
		Name: "calendar-window", Tag: "cw", step: calendarWindow{}, Refill: AtTurns, Calendar: true, MaxRequests: maxWindowRequests, MaxUnits: MaxUnits,
		Counted: true, ChargedLater: true, Remembered: true, Owed: true, Reserves: true, Weight: countedWeight,
	})
	Concurrent = row(Row{
		Name: "concurrent", Tag: "co", step: concurrent{}, Refill: OnReturn, MaxRequests: maxLogRequests, MaxUnits: maxRateUnits,
		TakesApart: true, Weight: heldWeight,
	})
)

func row(r Row) *Row {
	r.ID = byte(len(Rows) + 1)
	r.refiller, _ = r.step.(refiller)
	r.weigher, _ = r.step.(weigher)
	r.lister, _ = r.step.(lister)
	r.delayer, _ = r.step.(delayer)
	r.renewer, _ = r.step.(renewer)
	Rows = append(Rows, &r)
	return &r
}

func countedWeight(_ *Limit, op Op, _ int64) int {
	if op == Take {
		return 1
	}
	return 3
}

// logWeight counts the entries of a log that a check reads in the worst case: a
// part of all entries, and for a settlement as many as its units.
func logWeight(l *Limit, _ Op, cost int64) int {
	return 8 + int(l.Requests/25+min(cost, l.Requests)/5)
}

// heldWeight counts a command for every second unit. One command removes all
// units that have ended.
func heldWeight(l *Limit, _ Op, cost int64) int { return 8 + int(min(cost, l.Cap)/2) }
