// The busiest second: what was offered, and what handlers saw of it.

package prommetrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

var busiestSecond = describe("ratelimit_busiest_second_requests", "Requests in the busiest second of the last minute: offered, and admitted to handlers.", "seen")

// busiestFor is the number of seconds that are kept. A minute needs one more for the current second.
const busiestFor = 61

// busiest counts the requests of each second. Counts of a second that begins may lose a few
// requests, so that no request waits.
type busiest struct {
	seconds [busiestFor]struct {
		at                atomic.Int64 // Unix time
		offered, admitted atomic.Int64
	}
}

func (b *busiest) count(now int64, admitted bool) {
	s := &b.seconds[now%busiestFor]
	if at := s.at.Load(); at != now && s.at.CompareAndSwap(at, now) {
		s.offered.Store(0)
		s.admitted.Store(0)
	}
	s.offered.Add(1)
	if admitted {
		s.admitted.Add(1)
	}
}

func (b *busiest) collect(ch chan<- prometheus.Metric, now int64) {
	var offered, admitted int64
	for i := range b.seconds {
		if s := &b.seconds[i]; now-s.at.Load() < busiestFor {
			offered, admitted = max(offered, s.offered.Load()), max(admitted, s.admitted.Load())
		}
	}
	ch <- prometheus.MustNewConstMetric(busiestSecond, prometheus.GaugeValue, float64(offered), "offered")
	ch <- prometheus.MustNewConstMetric(busiestSecond, prometheus.GaugeValue, float64(admitted), "admitted")
}
