// What the status page shows of limiters.

package middleware

import "github.com/penstock-go/penstock/algorithms"

// limiterView is a limiter and what it has done since the start.
type limiterView struct {
	Name      string           `json:"name"`
	Kind      string           `json:"kind"`                // shared or memory
	Breaker   string           `json:"breaker,omitempty"`   // open or closed; "" if there is none
	Trips     uint64           `json:"trips,omitempty"`     // times that the circuit has opened
	Instances int              `json:"instances,omitempty"` // live instances
	Stats     algorithms.Stats `json:"stats"`

	Figures []figure `json:"-"` // the most telling counts
}

// A figure is a count and its label.
type figure struct {
	Label string
	Value uint64
}

// A statsLimiter is a limiter that counts what it does, as all limiters of this
// module do.
type statsLimiter interface {
	algorithms.Limiter
	Stats() algorithms.Stats
}

func newLimiterView(name string, limiter statsLimiter) limiterView {
	s := limiter.Stats()
	v := limiterView{Name: name, Kind: "memory", Stats: s}
	if s.Shared {
		v.Kind, v.Breaker, v.Trips, v.Instances = "shared", "closed", s.Fallback.Trips, s.Fallback.Instances
		if s.Fallback.Open {
			v.Breaker = "open"
		}
		v.Figures = sharedFigures(&s)
	}
	v.Figures = append(v.Figures,
		figure{"Keys in memory", uint64(s.Memory.Keys)}, figure{"Keys evicted", s.Memory.Evicted}, figure{"Keys refused", s.Memory.Refused})
	return v
}

func sharedFigures(s *algorithms.Stats) []figure {
	var failed uint64
	for _, n := range s.Redis.Errors {
		failed += n
	}
	return []figure{
		{"Checks asked", s.Redis.Checks}, {"Scripts sent", s.Redis.Scripts},
		{"Scripts failed", failed}, {"States not found", s.Redis.Missing},
		{"Denied from memory", s.DenyCache.Hits}, {"Units on lease", uint64(s.Lease.Units)},
		{"Decided here alone", s.Fallback.Local}, {"Failed open", s.Fallback.Passed}, {"Failed closed", s.Fallback.Refused},
		{"Keys owed to Redis", uint64(s.Fallback.Owed)}, {"Units lost", s.Fallback.Lost},
	}
}
