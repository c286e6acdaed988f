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
func ReadLimit(text string) (l algorithms.Limit, why string) {
	l, err := algorithms.ParseLimit(text)
	switch {
	case err != nil:
		why = "want a limit such as token-bucket 10/10s burst 10"
	case l == algorithms.Nobody():
		why = "want a limit that admits requests"
	case l.Requests() > MaxUnits || l.Burst() > MaxUnits:
		why = fmt.Sprintf("want %d requests at most, and as much burst", MaxUnits)
	case l.Window() < minWindow || l.Window() > maxWindow:
		why = fmt.Sprintf("want a window of %d to %d seconds", minWindow/time.Second, maxWindow/time.Second)
	case l.Algorithm() == leaky && l.Burst() > maxPlaces:
		why = fmt.Sprintf("want a queue of %d places at most: a browser sends no more at a time", maxPlaces)
	case l.Algorithm() == leaky && time.Duration(l.Burst())*l.Window() > time.Duration(l.Requests())*maxHold:
		why = fmt.Sprintf("want a queue that empties within %d seconds: take fewer places, more requests or a shorter window", maxHold/time.Second)
	}
	return l, why
}

var leaky = algorithms.LeakyBucket(1, time.Second).Algorithm()
