package middleware

import "github.com/penstock-go/penstock/algorithms"

// limiterView is a limiter and what it has done since the start.
type limiterView struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`                // stack, redis, fallback or memory
	Breaker   string `json:"breaker,omitempty"`   // open or closed; "" if there is none
	Trips     uint64 `json:"trips,omitempty"`     // how often it has opened
	Instances int    `json:"instances,omitempty"` // that are live
	Stats     any    `json:"stats"`               // as package algorithms has them

	Figures []figure `json:"-"` // the most telling of them
}

// A figure is a number of a limiter and what it is of.
type figure struct {
	Label string
	Value uint64
}

// newLimiterView returns the view of a limiter; false if it has no Stats.
func newLimiterView(name string, limiter algorithms.Limiter) (v limiterView, ok bool) {
	v.Name = name
	switch l := limiter.(type) {
	case *algorithms.Stack:
		s := l.Stats()
		v.Kind, v.Stats = "stack", s
		v.circuit(&s.Fallback)
		v.redis(&s.Redis)
		v.Figures = append(v.Figures, figure{"Denied from memory", s.Denied}, figure{"Units on lease", uint64(s.Lease.Units)})
		v.fallback(&s.Fallback)
		v.memory(&s.Memory)
	case *algorithms.Fallback:
		s := l.Stats()
		v.Kind, v.Stats = "fallback", s
		v.circuit(&s)
		v.fallback(&s)
	case *algorithms.Redis:
		s := l.Stats()
		v.Kind, v.Stats = "redis", s
		v.redis(&s)
	case *algorithms.Memory:
		s := l.Stats()
		v.Kind, v.Stats = "memory", s
		v.memory(&s)
	default:
		return v, false
	}
	return v, true
}

func (v *limiterView) circuit(s *algorithms.FallbackStats) {
	v.Breaker, v.Trips, v.Instances = "closed", s.Trips, s.Instances
	if s.Open {
		v.Breaker = "open"
	}
}

func (v *limiterView) redis(s *algorithms.RedisStats) {
	v.Figures = append(v.Figures,
		figure{"Checks asked", s.Checks}, figure{"Scripts sent", s.Scripts},
		figure{"Scripts failed", s.Errors}, figure{"States not found", s.Missing})
}

func (v *limiterView) fallback(s *algorithms.FallbackStats) {
	v.Figures = append(v.Figures,
		figure{"Decided here alone", s.Local}, figure{"Failed open", s.Passed}, figure{"Failed closed", s.Refused},
		figure{"Keys owed to Redis", uint64(s.Owed)}, figure{"Units lost", s.Lost})
}

func (v *limiterView) memory(s *algorithms.MemoryStats) {
	v.Figures = append(v.Figures, figure{"Keys in memory", uint64(s.Keys)}, figure{"Keys evicted", s.Evicted}, figure{"Keys refused", s.Refused})
}
