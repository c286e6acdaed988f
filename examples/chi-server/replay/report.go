// The report: what a replay has found, as JSON has it.

package replay

import (
	"time"
)

// A Report is the result of a replay. Durations are in seconds, and shares are parts of 1.
type Report struct {
	Lines    int      `json:"lines"`
	Bad      int      `json:"bad_lines"`
	BadShown []string `json:"bad_lines_shown,omitempty"`
	Late     int      `json:"late_lines"` // more than a minute out of order

	Start        time.Time `json:"start"`
	End          time.Time `json:"end"`
	WholeSeconds bool      `json:"whole_seconds"` // the log has no fractions of seconds

	Requests  int            `json:"requests"`
	Unrouted  int            `json:"unmatched"` // requests that no route serves
	Unknown   int            `json:"unknown"`   // requests without a user and without an IP address
	Unlimited int            `json:"unlimited"` // requests that met no policy
	Refused   map[int]int    `json:"refused"`   // by the status that the replay answers
	Logged    map[int]int    `json:"logged"`    // 429 and 503 in the log
	Differ    int            `json:"differ"`    // requests that the log and the replay answer differently
	Differing []Difference   `json:"differing,omitempty"`
	Goals     Goals          `json:"goals"`
	Policies  []PolicyReport `json:"policies"`
}

// A Difference is a request that only one of the log and the replay denied.
type Difference struct {
	Time     time.Time `json:"time"`
	Client   string    `json:"client"`
	Request  string    `json:"request"`
	Logged   int       `json:"logged"`   // the status
	Replayed int       `json:"replayed"` // the status; 0: admitted
}

// Goals are the shares that limits may deny, and the headroom of proposals.
type Goals struct {
	Requests float64 `json:"requests"`
	Clients  float64 `json:"clients"`
	Headroom float64 `json:"headroom"`
}

// A PolicyReport is the report on one limit of a policy. A policy has one for each plan,
// and for each route if its key contains the route.
type PolicyReport struct {
	Policy string `json:"policy"`
	Route  string `json:"route,omitempty"`
	Limit  string `json:"limit"`

	Results    []Result      `json:"results"` // of the policy's limit, and then of the other algorithms
	MostDenied []Client      `json:"most_denied,omitempty"`
	Smallest   []Smallest    `json:"smallest,omitempty"` // for requests, and for clients
	Redis      RedisLoad     `json:"redis"`
	Outage     Outage        `json:"outage"`
	Proposal   *Proposal     `json:"proposal,omitempty"`
	Note       string        `json:"note,omitempty"` // why there is no proposal, or what it lacks
	Curve      []CurvePoint  `json:"curve,omitempty"`
	Minutes    []MinuteCount `json:"minutes"`
}

// A Result is what one limit would have done.
type Result struct {
	Limit    string  `json:"limit"`
	Requests int64   `json:"requests"`
	Denied   int64   `json:"denied"`
	Share    float64 `json:"denied_share"`
	Keys     int     `json:"keys"`
	Clients  int     `json:"denied_keys"`
	Longest  float64 `json:"longest_wait"` // of a denial; waits that never end are left out
	Worst    Minute  `json:"worst_minute"`
}

// A Minute is the minute with the most denials, or with the most requests if there are
// none.
type Minute struct {
	Start    time.Time `json:"start"`
	Requests int64     `json:"requests"`
	Denied   int64     `json:"denied"`
}

// MinuteCount is one minute, in minutes since 1970.
type MinuteCount struct {
	Minute   int64 `json:"minute"`
	Requests int64 `json:"requests"`
	Denied   int64 `json:"denied"`
}

// A Client is a key and its requests.
type Client struct {
	Key      string `json:"key"`
	Requests uint32 `json:"requests"`
	Denied   uint32 `json:"denied"`
}

// A Smallest is the smallest limit that denies under a share of requests or of clients.
type Smallest struct {
	Of    string  `json:"of"` // "requests" or "clients"
	Under float64 `json:"under"`
	Limit string  `json:"limit,omitempty"` // "": the algorithm has none

	requests int64
}

// A RedisLoad is the load that a policy puts on Redis.
type RedisLoad struct {
	Calls   int64 `json:"calls"`
	Busiest int64 `json:"calls_in_busiest_second"`
	Keys    int   `json:"keys_at_once"`
	Bytes   int64 `json:"bytes"`
}

// An Outage is what ten minutes without Redis at the worst time would have done.
type Outage struct {
	Start    time.Time `json:"start"`
	Mode     string    `json:"mode"`
	Requests int64     `json:"requests"`
	Admitted int64     `json:"admitted"`
	Beyond   int64     `json:"beyond_limit"` // admitted, though the limit would have denied them
}

// A Proposal is a limit with headroom.
type Proposal struct {
	Limit    string  `json:"limit"`
	Requests float64 `json:"denied_requests"` // share that it would have denied
	Clients  float64 `json:"denied_clients"`
	Code     string  `json:"code,omitempty"` // "": the limit is an override
}

// A CurvePoint is what a limit of so many requests denies.
type CurvePoint struct {
	Limit    int64   `json:"limit"`
	Requests float64 `json:"denied_requests"`
	Clients  float64 `json:"denied_clients"`
}
