package comeback

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// grid returns a duration that divides all window ends of an aligned limit,
// counted from the epoch. Calendar periods end at whole minutes, because
// today's time zones differ from UTC by whole minutes.
func grid(l algorithms.Limit) time.Duration {
	if l.Algorithm().Calendar() {
		return time.Minute
	}
	return l.Window()
}
