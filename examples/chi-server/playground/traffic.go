// The traffic of the comparison.

package playground

import "time"

// A traffic has the arrivals of requests, from the begin of a window.
type traffic struct {
	span     time.Duration // of the picture
	arrivals func(requests int64, window time.Duration) []time.Duration
}

// compared is the window of the limits that are compared.
const compared = time.Minute

// traffics are by their names on the page. Each has at most 6·maxUnits requests.
var traffics = map[string]traffic{
	// As many as the limit, evenly spaced.
	"steady": {3 * compared, func(requests int64, window time.Duration) []time.Duration {
		return even(0, 3*window, 3*requests)
	}},
	// One window's requests in its last sixth, and the next window's in its first.
	"edge": {2 * compared, func(requests int64, window time.Duration) []time.Duration {
		return even(window-window/6, window/3, 2*requests)
	}},
	// Twice as many as the limit, evenly spaced.
	"overload": {3 * compared, func(requests int64, window time.Duration) []time.Duration {
		return even(0, 3*window, 6*requests)
	}},
}

// even returns n instants that divide a span evenly, beginning with begin.
func even(begin, span time.Duration, n int64) []time.Duration {
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = (begin + span*time.Duration(i)/time.Duration(n)).Truncate(time.Microsecond)
	}
	return all
}
