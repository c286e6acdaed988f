package algorithms

import "time"

// A Finding is a mistake in how a service is put together that shows only while
// it runs. It holds names of the configuration, and nothing of a client's.
type Finding struct {
	// Code is what to search for, e.g. "PS201": RUNBOOK.md has all of them. Those
	// from PS101 are of package middleware, those from PS201 of this one.
	Code string `json:"code"`

	// Sentence says what is wrong, Remedy what to do about it.
	Sentence string `json:"sentence"`
	Remedy   string `json:"remedy"`

	// Policy is the policy that it concerns; "" if it is all of them.
	Policy string `json:"policy,omitempty"`

	// First is when it was found.
	First time.Time `json:"first"`
}
