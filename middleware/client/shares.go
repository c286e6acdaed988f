package client

import (
	"math"
	"sync"
)

const (
	whole   = 1_000_000 // parts: all requests that are sent
	reserve = 10        // retries that a Transport may send beyond its share
)

// shares are the retry budget, in parts. With a share of s parts, a first attempt earns s, and a retry costs whole - s.
// So n first attempts may have n·s/(whole-s) retries, which are s parts of all requests. Example: at 0.1, nine first
// attempts earn 0.9, the cost of one retry: one in ten requests is a retry.
type shares struct {
	share int64 // 0: no bound

	mu   sync.Mutex
	left int64
}

func (s *shares) start(share float64) {
	s.share = int64(math.Ceil(share * whole)) // the least share is not 0, which has no bound
	s.left = reserve * (whole - s.share)
}

func (s *shares) earn() { s.add(s.share) }

// spend takes one retry, or returns false.
func (s *shares) spend() bool { return s.add(s.share - whole) }

// add changes what is left. It returns false if less than nothing would be left.
func (s *shares) add(parts int64) bool {
	if s.share == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left+parts < 0 {
		return false
	}
	s.left = min(s.left+parts, reserve*(whole-s.share))
	return true
}
