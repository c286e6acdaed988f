// Stats of all limiters, and findings about their configuration.

package algorithms

import "time"

// Stats are what a limiter has done since it was made. Counts only grow; gauges
// are marked. Parts that a limiter does not have are zero. Every limiter of
// this module has a method Stats() Stats.
type Stats struct {
	// Shared says that the limiter counts together with other instances, and
	// has the parts Redis, Fallback, DenyCache and Lease.
	Shared bool

	// Redis counts round trips.
	Redis struct {
		Checks      uint64 // checks sent to Redis
		Scripts     uint64 // scripts sent, each with the checks of many callers
		ScriptLoads uint64 // scripts that Redis did not know and received whole

		// Errors counts failures by reason (see shared.Reason): of scripts, of
		// calls with a bad stored key, of calls that waited too long, and of
		// announcements of this instance. Every reason has an entry from the
		// start.
		Errors map[string]uint64

		// Missing counts checks without a stored state: new keys, and keys that
		// were evicted or flushed. A jump means that Redis forgets limits.
		Missing uint64

		// Batches counts scripts by size: Batches[i] held more than 1<<(i-1)
		// and at most 1<<i checks. The last also counts larger scripts. Batched
		// is their sum of checks.
		Batches [9]uint64
		Batched uint64

		// ReturnsFailed counts units that could not be given back, after a
		// denial in another Cluster slot or from a lease. They stay charged
		// until they drain.
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

		Owed       int    // gauge: keys with local charges that Redis has not received yet
		HandedBack uint64 // units that Redis received after an outage
		Lost       uint64 // units that may be missing in Redis, because it did not answer
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
		Lost     uint64 // units whose window ended, or that could not go back
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

// A Finding is a misconfiguration that shows only while a service runs. It
// names parts of the configuration, and nothing of a client.
type Finding struct {
	// Code is the entry in RUNBOOK.md, e.g. "PS201": from PS101 of the
	// middleware, from PS201 of the shared limiter.
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
