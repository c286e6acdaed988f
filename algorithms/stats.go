// Stats of all limiters, and findings about their configuration.

package algorithms

import "time"

// Stats are a limiter's counts since it was made, and gauges, which are marked.
// Every limiter of this module has a method Stats() Stats.
type Stats struct {
	// Shared says that the limiter counts together with other instances, and
	// has the parts Redis, Fallback, DenyCache and Lease.
	Shared bool

	// Redis counts round trips.
	Redis struct {
		Checks      uint64 // checks sent to Redis
		Scripts     uint64 // scripts sent
		ScriptLoads uint64 // scripts that Redis did not know

		// Errors counts failures by shared.Reason. Every reason has an entry.
		Errors map[string]uint64

		// Missing counts checks without a stored state. A jump means that Redis
		// forgets limits.
		Missing uint64

		// Batches[i] counts scripts of more than 1<<(i-1) and at most 1<<i
		// checks; the last also larger ones. Batched counts their checks.
		Batches [9]uint64
		Batched uint64

		// ReturnsFailed counts units that could not be given back.
		ReturnsFailed uint64
	}

	// Fallback is the service without Redis, in checks unless stated.
	Fallback struct {
		Open      bool   // gauge: the circuit is open and Redis is bypassed
		Trips     uint64 // times that the circuit has opened
		Instances int    // gauge: live instances known to this one

		Local   uint64 // checks that this instance decided alone
		Passed  uint64 // checks that failed open
		Refused uint64 // calls that failed closed

		Owed       int    // gauge: keys with local charges for Redis
		HandedBack uint64 // units that Redis received after an outage
		Lost       uint64 // units that may be missing in Redis
	}

	// Changes are the latest 16 times that the circuit has opened or closed, oldest
	// first. A circuit without changes has been closed from the start.
	Changes []CircuitChange

	// DenyCache remembers denials.
	DenyCache struct {
		Hits uint64 // calls denied from memory
		Keys int    // gauge: remembered keys, some of them expired
	}

	// Lease is about hot keys. Leased is the sum of Units, Spent, Returned,
	// Lost, and the units on their way back.
	Lease struct {
		Keys  int   // gauge: hot keys
		Units int64 // gauge: units on lease here

		Blocks   uint64 // blocks leased
		Leased   uint64 // units in them
		Spent    uint64 // units that admitted takes
		Returned uint64 // units that went back
		Lost     uint64 // other units
	}

	// Memory is the limiter itself, or the part of a shared limiter that
	// decides without Redis.
	Memory struct {
		Keys    int    // gauge: keys held, some of them expired
		Expired uint64 // keys forgotten because they were full again
		Evicted uint64 // keys forgotten to make room
		Refused uint64 // new keys without room
	}
}

// A CircuitChange says when the circuit of a shared limiter has opened or closed.
type CircuitChange struct {
	At     time.Time
	Open   bool
	Reason string // why it has opened, as shared.Reason says it; "" if it has closed
}

// A Finding is a misconfiguration that shows only while a service runs.
type Finding struct {
	// Code is the entry in RUNBOOK.md, e.g. "PS201".
	Code string `json:"code"`

	// Sentence says what is wrong, and Remedy what to do about it.
	Sentence string `json:"sentence"`
	Remedy   string `json:"remedy"`

	// Policy is the policy it concerns; "" means all.
	Policy string `json:"policy,omitempty"`

	// First is when it was found.
	First time.Time `json:"first"`

	// Dismissed is when an operator dismissed it; zero: nobody did.
	Dismissed time.Time `json:"dismissed,omitzero"`
}
