package settle

import (
	"slices"
	"sync"
	"time"
)

const remembered = 16 // holds of a policy

// Holds are how long the last requests of a policy held units of its concurrent
// limit, in this process. The zero value has none; Holds are safe for concurrent
// use.
type Holds struct {
	mu    sync.Mutex
	last  [remembered]time.Duration
	ended int
}

func (h *Holds) add(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last[h.ended%remembered] = d
	h.ended++
}

// Median returns the median of the last sixteen holds, at least MinHold and at most
// the longest; without any, the longest. A denied client learns it, because the
// limiter cannot know when a running request ends.
func (h *Holds) Median(longest time.Duration) time.Duration {
	h.mu.Lock()
	n := min(h.ended, remembered)
	sorted := h.last
	h.mu.Unlock()
	if n == 0 {
		return longest
	}
	slices.Sort(sorted[:n])
	return min(max(sorted[n/2], MinHold), longest)
}
