// One type of Stats for all limiters, and the findings about their set-up.

package algorithms

import "time"

// Stats are what a limiter has done since it was made. Counts only grow; fields
// that are gauges say so. Parts that a limiter does not have are zero.
//
// Every limiter of this module has a method Stats() Stats. Metrics and pages
// need only that method.
type Stats struct {
	// Shared says that the limiter counts together with other instances. The
	// parts Redis, Fallback, DenyCache and Lease are those of such a limiter.
	Shared bool

	// Redis are the round trips.
	Redis struct {
		Checks      uint64 // checks that Redis was asked
		Scripts     uint64 // scripts that were sent, each with the checks of many callers
		ScriptLoads uint64 // scripts that Redis did not know and received whole

		// Errors are failures by reason (see shared.Reason): scripts that failed,
		// calls that failed because of one stored key, times that calls had
		// waited for too long, and failed announcements of this instance. Every
		// reason has an entry from the start.
		Errors map[string]uint64

		// Missing are checks that found no stored state. New keys do, and keys
		// that were evicted or flushed: a jump means that Redis forgets limits.
		Missing uint64

		// Batches are the scripts by how many checks they held: Batches[i]
		// counts scripts of more than 1<<(i-1) and at most 1<<i checks; the
		// last also counts larger ones.
		Batches [9]uint64
		// Batched are the checks in Batches.
		Batched uint64

		// ReturnsFailed are the times that units could not be given back: those
		// that a call took in one Cluster slot when it was denied in another,
		// and those that were left on a lease. They stay charged until they
		// drain.
		ReturnsFailed uint64
	}

	// Fallback is the service without Redis. Counts are of checks unless they
	// say otherwise.
	Fallback struct {
		Open      bool   // gauge: the circuit is open and Redis is bypassed
		Trips     uint64 // times that the circuit has opened
		Instances int    // gauge: live instances, as far as this one knows

		Local   uint64 // checks that this instance decided alone
		Passed  uint64 // checks that failed open
		Refused uint64 // calls that failed closed

		Owed       int    // gauge: keys whose local charges Redis has yet to receive
		HandedBack uint64 // units that Redis received afterwards
		Lost       uint64 // units that may be missing in Redis, because no reply to their hand-back came
	}

	// Changes are the latest 16 times that the circuit has opened or closed, oldest
	// first. A circuit without changes has been closed from the start.
	Changes []CircuitChange

	// DenyCache is the memory of denials.
	DenyCache struct {
		Hits uint64 // calls that were denied from memory, without Redis
		Keys int    // gauge: keys whose denials are remembered, some of them expired
	}

	// Lease is what hot keys hold. Leased is the sum of Units, Spent, Returned
	// and Lost, and of units on their way back.
	Lease struct {
		Keys  int   // gauge: hot keys
		Units int64 // gauge: units on lease, to be spent here

		Blocks   uint64 // blocks of units that were leased
		Leased   uint64 // units in them
		Spent    uint64 // units that admitted takes
		Returned uint64 // units that went back
		Lost     uint64 // units whose window ended, or that could not go back
	}

	// Memory is what counts in this process: the limiter itself, or the part
	// of a shared limiter that decides while Redis does not.
	Memory struct {
		Keys    int    // gauge: keys that are held, some of them expired
		Expired uint64 // keys that were forgotten because they were full again
		Evicted uint64 // keys that were forgotten to make room
		Refused uint64 // new keys that there was no room for
	}
}

// A CircuitChange says when the circuit of a shared limiter has opened or closed.
type CircuitChange struct {
	At     time.Time
	Open   bool
	Reason string // why it has opened, as shared.Reason says it; "" if it has closed
}

// A Finding is a mistake in how a service is put together that shows only while
// it runs. It holds names of the configuration, and nothing of a client's.
type Finding struct {
	// Code is what to search for in RUNBOOK.md, e.g. "PS201". Codes from PS101
	// are the middleware's, codes from PS201 those of the shared limiter.
	Code string `json:"code"`

	// Sentence says what is wrong, Remedy what to do about it.
	Sentence string `json:"sentence"`
	Remedy   string `json:"remedy"`

	// Policy is the policy that it concerns; "" if it is all of them.
	Policy string `json:"policy,omitempty"`

	// First is when it was found.
	First time.Time `json:"first"`

	// Dismissed is when an operator dismissed it; zero: nobody did.
	Dismissed time.Time `json:"dismissed,omitzero"`
}
