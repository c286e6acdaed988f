// The toy: the fixed window's model, half a window later.

package limitertest

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

var _ = register(algorithm{
	of:      algorithms.Toy,
	most:    1_000_000_000_000,
	family:  window,
	tag:     "ty",
	storage: texts,
	model: func(l algorithms.Limit) model {
		window := l.Window().Microseconds()
		return &turning{limit: l.Requests(), period: func(at int64) int64 { return (at + window/2) / window }}
	},
	vectors: []trace{{"a toy turns in the middle of the minute", algorithms.Toy(20, time.Minute), []step{
		take(0, 18).yes(2, 60*second).stored("1763729430000000018"),
		take(59*second, 3).no(2, 1*second, 1*second).same(),
		take(60*second, 20).yes(0, 60*second).stored("1763729490000000020"),
	}}},
})
