// Stats of all limiters, and findings about their configuration.

package algorithms

import "time"

// Stats are a limiter's counts since it was made, and gauges. All limiters of this module have a method Stats()
// Stats. Package prommetrics explains the fields.
type Stats struct {
	Shared bool // shared limiters have the parts Redis, Fallback, Views and Ahead

	Redis struct {
		Checks, Scripts, ScriptLoads uint64

		Errors   map[string]uint64 // by shared.Reason; every reason has an entry
		Missing  uint64
		Findings map[string]bool // by code; every code has an entry

		RoundTrips struct {
			Count  uint64
			Sum    time.Duration
			Within map[time.Duration]uint64 // at most so long; the longest bound is 1 s
		}
		Answered       time.Time // zero: never
		Took, Deadline time.Duration
		Excused        uint64

		Batches [9]uint64 // at i, of more than 1<<(i-1), up to 1<<i checks; the last also of more
		Batched uint64    // checks
	}

	Fallback struct {
		Open          int
		Trips         uint64
		Reason, Error string // of the trip; clients must not see the error
		Instances     int    // alone, this instance admits one part in so many of each limit

		Local, Passed uint64 // checks
		Refused       uint64 // calls

		Owed             int    // keys
		HandedBack, Lost uint64 // units
		Unknown          int64  // units

		Returns               int
		Returned, ReturnsLost uint64
	}

	Views struct {
		Denied uint64
		Keys   int // with expired keys
	}

	// Ahead counts calls that shared.Options.Ahead could admit.
	Ahead struct {
		Admitted                                        uint64
		Near, Allowance, Census, Busy, Unknown, Trouble uint64

		Overdrawn      uint64 // units
		Unacknowledged int64  // units
	}

	// Memory is the limiter itself, or the part of a shared limiter that
	// decides without Redis.
	Memory struct {
		Keys                      int // with expired keys
		Expired, Evicted, Refused uint64
	}
}

// A Finding is a misconfiguration that a running service shows.
type Finding struct {
	Code     string    `json:"code"`             // the entry in RUNBOOK.md, e.g. "PS201"
	Sentence string    `json:"sentence"`         // what is wrong
	Remedy   string    `json:"remedy"`           // what to do
	Policy   string    `json:"policy,omitempty"` // "" for all policies
	First    time.Time `json:"first"`            // when it was found
}
