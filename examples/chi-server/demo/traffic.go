package demo

import "time"

// A traffic is when requests come, from the turn of a window on.
type traffic struct {
	span     time.Duration // that is shown
	arrivals func(requests int64, window time.Duration) []time.Duration
}

// compared is the window of the limits that are compared.
const compared = time.Minute

// traffics by the names that the page has for them. None has more than
// 6·maxUnits requests.
var traffics = map[string]traffic{
	// As many as the limit, evenly spaced.
	"steady": {3 * compared, func(requests int64, window time.Duration) []time.Duration {
		return even(0, 3*window, 3*requests)
	}},
	// All that a window has within its last sixth, and all that the next one has
	// within its first.
	"edge": {2 * compared, func(requests int64, window time.Duration) []time.Duration {
		return even(window-window/6, window/3, 2*requests)
	}},
	// Twice as many as the limit, evenly spaced.
	"overload": {3 * compared, func(requests int64, window time.Duration) []time.Duration {
		return even(0, 3*window, 6*requests)
	}},
}

// even returns n instants that divide a span evenly, from its begin on.
func even(begin, span time.Duration, n int64) []time.Duration {
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = (begin + span*time.Duration(i)/time.Duration(n)).Truncate(time.Microsecond)
	}
	return all
}
