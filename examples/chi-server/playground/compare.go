// The comparison of the five algorithms.

package playground

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A comparison has the decisions of the five algorithms about the same traffic.
// Times are in milliseconds from the begin of a window.
type comparison struct {
	Traffic  string    `json:"traffic"`
	Requests int64     `json:"requests"` // per window
	Burst    int64     `json:"burst"`    // of the buckets
	Window   int64     `json:"window_ms"`
	Span     int64     `json:"span_ms"`
	Arrivals []float64 `json:"arrivals_ms"`
	Results  []result  `json:"results"`
}

// A result has the decisions of one algorithm.
type result struct {
	Algorithm string    `json:"algorithm"`
	Limit     string    `json:"limit"`
	Admitted  int       `json:"admitted"`
	Denied    int       `json:"denied"`
	Fullest   int       `json:"fullest"` // served within any window's length
	FullestAt float64   `json:"fullest_at_ms"`
	Allowed   []bool    `json:"allowed"`   // per arrival
	Served    []float64 `json:"served_ms"` // times of the admitted requests, in order
}

// limitsOf returns the limits of the five algorithms, in the order of the page.
func limitsOf(requests, burst int64) []algorithms.Limit {
	return []algorithms.Limit{
		algorithms.FixedWindow(requests, compared),
		algorithms.SlidingWindowCounter(requests, compared),
		algorithms.SlidingWindowLog(requests, compared),
		algorithms.TokenBucket(requests, compared).WithBurst(burst),
		algorithms.LeakyBucket(requests, compared).WithBurst(burst),
	}
}

// compare answers ?traffic=edge&requests=10&burst=10.
func compare(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	requests, err1 := strconv.ParseInt(query.Get("requests"), 10, 64)
	burst, err2 := strconv.ParseInt(query.Get("burst"), 10, 64)
	t, ok := traffics[query.Get("traffic")]
	if err1 != nil || err2 != nil || !ok || min(requests, burst) < 1 || max(requests, burst) > maxUnits {
		refuse(w, http.StatusBadRequest, "want traffic=steady, edge or overload, and requests and burst from 1 to "+strconv.Itoa(maxUnits))
		return
	}
	c := comparison{Traffic: query.Get("traffic"), Requests: requests, Burst: burst, Window: compared.Milliseconds(), Span: t.span.Milliseconds()}
	arrivals := t.arrivals(requests, compared)
	for _, at := range arrivals {
		c.Arrivals = append(c.Arrivals, milliseconds(at))
	}
	for _, limit := range limitsOf(requests, burst) {
		one, err := play(r.Context(), limit, arrivals)
		if err != nil {
			refuse(w, http.StatusInternalServerError, "the comparison could not be made")
			return
		}
		c.Results = append(c.Results, one)
	}
	writeJSON(w, http.StatusOK, c)
}

// play sends traffic to a limiter whose clock is set to each arrival in turn. It
// takes milliseconds, and its result is always the same.
func play(ctx context.Context, limit algorithms.Limit, arrivals []time.Duration) (result, error) {
	turn := time.Unix(0, 0).Add(1_000_000 * compared) // windows are aligned to the Unix epoch
	var now atomic.Int64
	memory := algorithms.NewMemory(&algorithms.MemoryOptions{
		MaxKeys: 1_000, Now: func() time.Time { return turn.Add(time.Duration(now.Load())) },
	})
	one := result{Algorithm: limit.Algorithm().String(), Limit: limit.String()}
	var served []time.Duration
	for _, at := range arrivals {
		now.Store(int64(at))
		d, err := algorithms.Allow(ctx, memory, "const=all", limit)
		if err != nil {
			return result{}, err
		}
		one.Allowed = append(one.Allowed, d.Allowed)
		if !d.Allowed {
			one.Denied++
			continue
		}
		served = append(served, at+d.Delay)
		one.Served = append(one.Served, milliseconds(at+d.Delay))
	}
	begin, most := fullest(served, limit.Window())
	one.Admitted, one.Fullest, one.FullestAt = len(served), most, milliseconds(begin)
	return one, nil
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
