// The limits that visitors may choose.

package instruments

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// MaxUnits bounds the requests and the burst of a limit, and the cost of a request.
const MaxUnits = 100

const (
	minWindow = time.Second
	maxWindow = time.Minute
	maxHold   = 10 * time.Second // in the queue of a leaky bucket
	maxPlaces = 5                // of that queue: a browser sends six requests at a time, so a longer queue never denies
)

// ReadLimit reads a limit such as token-bucket 10/10s burst 10. It returns the
// reason why a visitor cannot have it, or "".
func ReadLimit(text string) (limit algorithms.Limit, why string) {
	limit, err := algorithms.ParseLimit(text)
	if err != nil {
		return limit, "want a limit such as token-bucket 10/10s burst 10"
	}
	return limit, outOfBounds(limit)
}

// outOfBounds returns the reason why a visitor cannot have a limit, or "".
func outOfBounds(l algorithms.Limit) string {
	switch {
	case l == algorithms.Nobody():
		return "want a limit that admits requests"
	case l.Requests() > MaxUnits || l.Burst() > MaxUnits:
		return fmt.Sprintf("want %d requests at most, and as much burst", MaxUnits)
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
