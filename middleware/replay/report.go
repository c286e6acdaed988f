// The report: what a replay has found, as JSON has it.

package replay

import (
	"time"
)

// A report is the result of a replay. Durations are in seconds, and shares are parts of 1.
type report struct {
	lines

	Start        time.Time `json:"start"`
	End          time.Time `json:"end"`
	WholeSeconds bool      `json:"whole_seconds"` // the log has no fractions of seconds

	Median  float64 `json:"median_duration"` // of logged durations
	Longest float64 `json:"longest_duration"`

	Requests  int            `json:"requests"`
	Unrouted  int            `json:"unmatched"`       // requests that no route serves and no policy limits
	Unknown   int            `json:"unknown"`         // requests that need an IP address, and have none
	Unlimited int            `json:"unlimited"`       // requests that met no policy
	Unmet     []string       `json:"unmet,omitempty"` // policies that no request met
	Refused   map[int]int    `json:"refused"`         // by the status that the replay answers
	Logged    map[int]int    `json:"logged"`          // 429 and 503 in the log
	Differ    int            `json:"differ"`          // requests that the log and the replay answer differently
	Goals     targets        `json:"goals"`
	Policies  []policyReport `json:"policies"`
}

// lines are the counts of what the files have.
type lines struct {
	All      int      `json:"lines"`
	Bad      int      `json:"bad_lines"`
	BadShown []string `json:"bad_lines_shown,omitempty"` // the first, with their places
	Late     int      `json:"late_lines"`                // more than a minute out of order
	Cut      []string `json:"unfinished,omitempty"`      // files that end in the middle of a line
}

// targets are the share that limits may deny, and the headroom of proposals.
type targets struct {
	Clients  float64 `json:"clients"`
	Headroom float64 `json:"headroom"`
}

// A policyReport is the report on one limit of a policy. A policy has one for each plan,
// and for each route if its key contains the route.
type policyReport struct {
	Policy string `json:"policy"`
	Route  string `json:"route,omitempty"`
	Limit  string `json:"limit"`

	Results    []result  `json:"results"` // one, of the limit
	MostDenied []client  `json:"most_denied,omitempty"`
	Smallest   string    `json:"smallest,omitempty"` // the smallest limit for the goal; "": the algorithm has none
	Curve      []point   `json:"curve,omitempty"`
	Proposal   *proposal `json:"proposal,omitempty"`
	Note       string    `json:"note,omitempty"` // why there is no proposal, or what it lacks
}

// A result is what a limit has done.
type result struct {
	Requests int64   `json:"requests"`
	Denied   int64   `json:"denied"`
	Share    float64 `json:"denied_share"`
	Keys     int     `json:"keys"`
	Clients  int     `json:"denied_keys"`
	Longest  float64 `json:"longest_wait"` // of a denial; waits that never end are left out
	Worst    minute  `json:"worst_minute"` // the first with the most denials, or with the most requests if there are none
}

// A client is a key and its requests.
type client struct {
	Key      string `json:"key"`
	Requests uint32 `json:"requests"`
	Denied   uint32 `json:"denied"`
}

// A proposal is a limit with headroom, and what it would have done.
type proposal struct {
	point
	MostDenied []client `json:"most_denied,omitempty"`
	Code       string   `json:"code,omitempty"` // "": the limit is an override
}
