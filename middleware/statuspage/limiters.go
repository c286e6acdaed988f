// The limiters that the page shows.

package statuspage

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/internal/wrapped"
)

// limitersOf yields the limiters of the Middlewares that have the methods of T, each
// once, by their names.
func limitersOf[T any](middlewares []*ratelimit.Middleware) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		var seen []T
		for _, m := range middlewares {
			name, limiter := m.Limiter()
			l, ok := wrapped.Find[T](limiter)
			if !ok || slices.ContainsFunc(seen, func(other T) bool { return wrapped.Same(other, l) }) {
				continue
			}
			if seen = append(seen, l); !yield(name, l) {
				return
			}
		}
	}
}

// A limiterView is a limiter and its counts since the start.
type limiterView struct {
	Name      string           `json:"name"`
	Kind      string           `json:"kind"`                // shared or memory
	Breaker   string           `json:"breaker,omitempty"`   // open or closed; "" if there is none
	Trips     uint64           `json:"trips,omitempty"`     // times that the circuit has opened
	Since     time.Time        `json:"since,omitzero"`      // when the page noticed the last change of the circuit; zero: none
	Instances int              `json:"instances,omitempty"` // live instances
	Stats     algorithms.Stats `json:"stats"`

	Why string `json:"why,omitempty"` // why Redis is not used; "" if it is

	Figures []figure `json:"-"` // the counts that the HTML page shows
}

type figure struct {
	Label string
	Value uint64
}

func newLimiterView(name string, s algorithms.Stats) limiterView {
	v := limiterView{Name: name, Kind: "memory", Stats: s}
	if s.Shared {
		v.Kind, v.Breaker, v.Trips, v.Instances = "shared", "closed", s.Fallback.Trips, s.Fallback.Instances
		if s.Fallback.Open > 0 {
			v.Breaker = "open"
			v.Why = v.whyBypassed()
		}
		var failed uint64
		for _, n := range s.Redis.Errors {
			failed += n
		}
		v.Figures = []figure{
			{"Checks sent to Redis", s.Redis.Checks}, {"Scripts sent to Redis", s.Redis.Scripts},
			{"Redis errors", failed}, {"Round trips for which this process was late", s.Redis.Excused}, {"States missing in Redis", s.Redis.Missing},
			{"Denied from memory", s.Views.Denied},
			{"Local checks", s.Fallback.Local}, {"Checks failed open", s.Fallback.Passed}, {"Calls failed closed", s.Fallback.Refused},
			{"Keys owed to Redis", uint64(s.Fallback.Owed)}, {"Units lost in outages", s.Fallback.Lost},
			{"Units perhaps charged by Redis", uint64(max(0, s.Fallback.Unknown))},
			{"Returns kept for Redis", uint64(s.Fallback.Returns)}, {"Returns lost", s.Fallback.ReturnsLost},
		}
	}
	v.Figures = append(v.Figures,
		figure{"Keys in memory", uint64(s.Memory.Keys)}, figure{"Keys evicted", s.Memory.Evicted}, figure{"Keys refused", s.Memory.Refused})
	v.Figures = slices.DeleteFunc(v.Figures, func(f figure) bool { return f.Value == 0 })
	return v
}

// Title returns the name of a limiter's Redis.
func (l limiterView) Title() string {
	if l.Name == "redis" {
		return "Redis"
	}
	return "Redis of " + l.Name
}

func (l limiterView) open() bool { return l.Breaker == "open" }

// state returns an id that changes whenever the circuit opens or closes.
func (l limiterView) state() string {
	return fmt.Sprintf("circuit of %s: %s, %d trips", l.Name, l.Breaker, l.Trips)
}

// whyBypassed says why Redis does not decide, and what this instance admits meanwhile.
func (l limiterView) whyBypassed() string {
	s := &l.Stats
	text := fmt.Sprintf("%s is not used: %s (%s), with a deadline of %v", l.Title(), s.Fallback.Reason, s.Fallback.Error, s.Redis.Deadline)
	if s.Redis.Answered.IsZero() {
		text += ", and it has never answered"
	} else {
		text += fmt.Sprintf(", and its last answer, at %s, took %v", s.Redis.Answered.UTC().Format("15:04:05"), s.Redis.Took.Round(100*time.Microsecond))
	}
	return text + fmt.Sprintf("; this instance admits 1/%d of each limit", s.Fallback.Instances)
}
