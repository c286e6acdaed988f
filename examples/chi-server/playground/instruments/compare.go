// The comparison of limits under the same traffic.

package instruments

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	compared  = 3 * time.Minute        // of the clock, at most; midnight comes after the first minute
	runsFor   = 4 * time.Second        // each request, for a limit of concurrent requests
	looks     = 250 * time.Millisecond // from one look at a limit's state to the next
	maxSent   = 600                    // requests
	maxLimits = 7
)

// A Result has the decisions of one limit. Times are in milliseconds from the first
// instant of the traffic.
type Result struct {
	Limit     string       `json:"limit"`
	Algorithm string       `json:"algorithm"`
	Capacity  int64        `json:"capacity"`
	Allowed   []bool       `json:"allowed"`    // per request
	Retry     []float64    `json:"retry_ms"`   // per request; 0 for an admitted one
	Served    []float64    `json:"served_ms"`  // times of the admitted requests, in order
	State     [][2]float64 `json:"state"`      // times, and units in use from then on
	Fullest   int          `json:"fullest"`    // served within any minute
	FullestAt float64      `json:"fullest_at"` // the begin of that minute
}

// A Comparison is the answer to ?limit=token-bucket+10/1m&limit=…&at=0,0,1500: the
// limits, and the times of the requests in milliseconds.
type Comparison struct {
	Results []Result `json:"results"`
}

// Compare sends the traffic of a query to each limit of the query, and answers a [Comparison]. It takes milliseconds,
// and the answer to a query is always the same.
func Compare(ctx context.Context, query url.Values) Answer {
	arrivals, ok := readTimes(query.Get("at"))
	texts := query["limit"]
	if !ok || len(texts) == 0 || len(texts) > maxLimits {
		return refuse(400, "want at=0,0,1500, up to 600 times in order within three minutes, and up to 7 limits")
	}
	var c Comparison
	for _, text := range texts {
		limit, err := algorithms.ParseLimit(text)
		if err != nil || limit == algorithms.Nobody() || max(limit.Requests(), limit.Burst()) > MaxUnits {
			return refuse(400, "want limits such as token-bucket 10/1m, of up to "+strconv.Itoa(MaxUnits)+" requests")
		}
		one, err := play(ctx, limit, arrivals)
		if err != nil {
			return refuse(500, "the comparison could not be made")
		}
		c.Results = append(c.Results, one)
	}
	return answer(200, c)
}

func readTimes(text string) (times []time.Duration, ok bool) {
	for part := range strings.SplitSeq(text, ",") {
		ms, err := strconv.ParseUint(part, 10, 32)
		at := time.Duration(ms) * time.Millisecond
		if err != nil || at > compared || len(times) == maxSent {
			return nil, false
		}
		times = append(times, at)
	}
	return times, slices.IsSorted(times)
}

// A player sends traffic to a limiter whose clock it sets.
type player struct {
	now     time.Duration
	memory  *algorithms.Memory
	limit   algorithms.Limit
	running []algorithms.Check // the requests that a Concurrent limit counts, each with its end
	ends    []time.Duration
	err     error
	Result
}

func play(ctx context.Context, limit algorithms.Limit, arrivals []time.Duration) (Result, error) {
	begin := time.Date(2025, time.December, 31, 23, 59, 0, 0, time.UTC)
	p := &player{limit: limit, Result: Result{Limit: limit.String(), Algorithm: limit.Algorithm().String(), Capacity: limit.Burst()}}
	p.memory = algorithms.NewMemory(&algorithms.MemoryOptions{Now: func() time.Time { return begin.Add(p.now) }})
	var served []time.Duration
	for at := time.Duration(0); at <= compared; at += looks {
		for len(p.Allowed) < len(arrivals) && arrivals[len(p.Allowed)] <= at {
			sent := arrivals[len(p.Allowed)]
			d := p.ask(ctx, sent, 1)
			p.Allowed, p.Retry = append(p.Allowed, d.Allowed), append(p.Retry, milliseconds(d.RetryAfter))
			if d.Allowed {
				served = append(served, sent+d.Delay)
				p.Served = append(p.Served, milliseconds(sent+d.Delay))
			}
		}
		p.ask(ctx, at, 0)
	}
	first, most := fullest(served, time.Minute)
	p.Fullest, p.FullestAt = most, milliseconds(first)
	return p.Result, p.err
}

// ask returns a decision, after the ends of the requests that have run long enough.
func (p *player) ask(ctx context.Context, at time.Duration, cost int64) algorithms.Decision {
	for len(p.ends) > 0 && p.ends[0] <= at {
		p.now = p.ends[0]
		p.err = cmp.Or(p.err, p.memory.Allow(ctx, p.running[:1]))
		p.running, p.ends = p.running[1:], p.ends[1:]
	}
	p.now = at
	checks := []algorithms.Check{{Policy: policy, Key: "const=all", Limit: p.limit, Cost: cost}}
	p.err = cmp.Or(p.err, p.memory.Allow(ctx, checks))
	d := checks[0].Decision
	if cost > 0 && d.Allowed && p.limit.Algorithm().Concurrent() {
		checks[0].Op = algorithms.Return
		p.running, p.ends = append(p.running, checks[0]), append(p.ends, at+runsFor)
	}
	p.state(at, p.limit.Burst()-d.Remaining)
	return d
}

// state adds the units in use, if they have changed.
func (r *Result) state(at time.Duration, used int64) {
	if n := len(r.State); n == 0 || r.State[n-1][1] != float64(used) {
		r.State = append(r.State, [2]float64{milliseconds(at), float64(used)})
	}
}

// fullest returns the begin of the window with the most served requests, and their
// number. Two requests exactly a window apart are in different windows. served is
// in order.
func fullest(served []time.Duration, window time.Duration) (begin time.Duration, most int) {
	first := 0
	for i, at := range served {
		for at-served[first] >= window {
			first++
		}
		if n := i - first + 1; n > most {
			begin, most = served[first], n
		}
	}
	return begin, most
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1_000 }
