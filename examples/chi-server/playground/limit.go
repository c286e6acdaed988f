// The limits that visitors may choose.

package playground

import (
	"fmt"
	"net/http"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// Bounds of the limits.
const (
	maxUnits  = 100 // of requests and of burst
	minWindow = time.Second
	maxWindow = time.Minute
	maxHold   = 10 * time.Second // in the queue of a leaky bucket
	maxPlaces = 5                // of that queue: a browser sends six requests at a time, so a longer queue never denies
)

// readLimit reads {"limit":"token-bucket 10/10s burst 10"}. It answers 400 to a
// limit outside the bounds.
func readLimit(w http.ResponseWriter, r *http.Request) (algorithms.Limit, bool) {
	var ask struct{ Limit string }
	if !read(w, r, &ask) {
		return algorithms.Limit{}, false
	}
	limit, err := algorithms.ParseLimit(ask.Limit)
	if err != nil {
		refuse(w, http.StatusBadRequest, "want a limit such as token-bucket 10/10s burst 10")
		return algorithms.Limit{}, false
	}
	if why := outOfBounds(limit); why != "" {
		refuse(w, http.StatusBadRequest, why)
		return algorithms.Limit{}, false
	}
	return limit, true
}

// outOfBounds returns the reason why a sandbox cannot have a limit, or "".
func outOfBounds(l algorithms.Limit) string {
	switch {
	case l == algorithms.Nobody():
		return "want a limit that admits requests"
	case l.Requests() > maxUnits || l.Burst() > maxUnits:
		return fmt.Sprintf("want %d requests at most, and as much burst", maxUnits)
	case l.Window() < minWindow || l.Window() > maxWindow:
		return fmt.Sprintf("want a window of %d to %d seconds", minWindow/time.Second, maxWindow/time.Second)
	case l.Algorithm() == leaky && l.Burst() > maxPlaces:
		return fmt.Sprintf("want a queue of %d places at most: a browser sends no more at a time", maxPlaces)
	case l.Algorithm() == leaky && time.Duration(l.Burst())*l.Window() > time.Duration(l.Requests())*maxHold:
		return fmt.Sprintf("want a queue that empties within %d seconds: take fewer places, more requests or a shorter window", maxHold/time.Second)
	default:
		return ""
	}
}

var leaky = algorithms.LeakyBucket(1, time.Second).Algorithm()
