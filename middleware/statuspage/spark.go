// The drawings of the last minute.

package statuspage

import (
	"fmt"
	"slices"
	"time"
)

const step = 5 * time.Second

// A ticks is the last minute in steps of 5 s, oldest first. The last step is not
// over.
type ticks struct {
	Requests []uint32 `json:"requests"`
	Denied   []uint32 `json:"denied"`
}

// add adds the counts of another policy in the same minute.
func (t *ticks) add(other ticks) {
	for i := range min(len(t.Requests), len(other.Requests)) {
		t.Requests[i] += other.Requests[i]
		t.Denied[i] += other.Denied[i]
	}
}

// Size of a drawing.
const (
	sparkSteps  = 13
	sparkHeight = 24
)

// A bar is one step of a drawing: the denied requests at the bottom, and the others
// above.
type bar struct{ X, AllowedY, Allowed, DeniedY, Denied int }

// Bars returns the steps that have requests. The highest fills the drawing.
func (t ticks) Bars() (bars []bar) {
	most := t.most()
	for i, n := range t.Requests {
		if n == 0 {
			continue
		}
		high := max(2, int(n)*sparkHeight/int(most))
		denied := int(t.Denied[i]) * high / int(n)
		if t.Denied[i] > 0 {
			denied = max(1, denied)
		}
		bars = append(bars, bar{
			X: 8 * (sparkSteps - len(t.Requests) + i), AllowedY: sparkHeight - high, Allowed: high - denied, DeniedY: sparkHeight - denied, Denied: denied,
		})
	}
	return bars
}

func (t ticks) most() uint32 { return slices.Max(append([]uint32{0}, t.Requests...)) }

// Label says what the drawing shows.
func (t ticks) Label() string {
	return fmt.Sprintf("The last minute in steps of 5 s, with at most %s in a step", plural(t.most(), "request", "requests"))
}
