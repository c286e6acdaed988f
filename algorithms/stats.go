// Stats of all limiters, and findings about their configuration.

package algorithms

import "time"

// Stats are a limiter's counts since it was made, and marked gauges.
// All limiters of this module have a method Stats() Stats. Package prommetrics
// explains them.
type Stats struct {
	// Shared limiters have the parts Redis, Fallback, Views and Ahead.
	Shared bool

	Redis struct {
		Checks      uint64
		Scripts     uint64
		ScriptLoads uint64

		// Errors counts failures by shared.Reason. Every reason has an entry.
		Errors map[string]uint64

		Missing uint64

		// Findings says which findings hold, by code. Every code has an entry.
		Findings map[string]bool

		// RoundTrips are of scripts that were answered, also after the deadline,
		// and also of probes.
		RoundTrips struct {
			Count  uint64
			Sum    time.Duration
			Within map[time.Duration]uint64 // at most so long; the longest bound is 1 s
		}
		Answered time.Time     // gauge: the last answer; zero: none
		Took     time.Duration // gauge: its round trip
		Deadline time.Duration // gauge

		// Excused counts round trips that expired because this process was late.
		Excused uint64

		// Batches[i] counts scripts of more than 1<<(i-1), up to 1<<i checks, the
		// last also larger ones. Batched counts their checks.
		Batches [9]uint64
		Batched uint64
	}

	Fallback struct {
		Open      int // gauge: circuits, of one server at most one, of a Cluster one for each master
		Trips     uint64
		Reason    string // shared.Reason of the failure that opened a circuit last
		Error     string // its text; clients must not see it
		Share     string // gauge: the part of each limit that this instance admits alone, e.g. "1/2"
		Instances int    // gauge

		Local   uint64 // checks
		Passed  uint64 // checks
		Refused uint64 // calls

		Owed       int    // gauge: keys
		HandedBack uint64 // units
		Lost       uint64 // units
		Unknown    int64  // gauge: units that were admitted here, and that Redis has perhaps charged

		Returns     int    // gauge: Returns that wait for Redis
		Returned    uint64 // Returns that Redis has received late
		ReturnsLost uint64 // Returns whose units may stay charged
	}

	Views struct {
		Denied uint64 // calls that a remembered answer denied
		Keys   int    // gauge, with expired keys
	}

	// Ahead counts calls that could be admitted before Redis has charged them. Those
	// that were not asked Redis, for the first reason that was found.
	Ahead struct {
		Admitted uint64

		Near      uint64 // the limit is near
		Allowance uint64 // the cost, or the units that Redis has not acknowledged, are beyond this instance's allowance
		Census    uint64 // it is not certain how many instances there are
		Busy      uint64 // too many charges are under way
		Unknown   uint64 // the key is unknown, and perhaps it was forgotten for lack of room
		Trouble   uint64 // Redis has not answered the latest charge, or a circuit is open

		Overdrawn      uint64 // units that were admitted, and that Redis would have denied
		Unacknowledged int64  // gauge: units that were admitted, and that Redis has not acknowledged
	}

	// Memory is the limiter itself, or the part of a shared limiter that
	// decides without Redis.
	Memory struct {
		Keys    int    // gauge, with expired keys
		Expired uint64 // keys
		Evicted uint64 // keys
		Refused uint64 // keys
	}
}

// A Finding is a misconfiguration that a running service shows.
type Finding struct {
	// Code is the entry in RUNBOOK.md, e.g. "PS201".
	Code string `json:"code"`

	// Sentence says what is wrong, and Remedy what to do about it.
	Sentence string `json:"sentence"`
	Remedy   string `json:"remedy"`

	// Policy is "" for all policies.
	Policy string `json:"policy,omitempty"`

	// First is when it was found.
	First time.Time `json:"first"`
}
