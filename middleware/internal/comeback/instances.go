package comeback

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/internal/wrapped"
)

// instances count the instances that share a limiter. The zero value has counted
// none.
type instances struct {
	counted atomic.Int64 // when n was read
	n       atomic.Int64
}

// of returns how many instances share the limiter, as far as the limiter knows. now is in µs. It asks the limiter at
// most once a second.
func (i *instances) of(l algorithms.Limiter, now int64) int64 {
	counted := i.counted.Load()
	if n := i.n.Load(); n > 0 && now-counted < time.Second.Microseconds() || !i.counted.CompareAndSwap(counted, now) {
		return max(n, 1)
	}
	n := int64(1)
	if counter, ok := wrapped.Find[wrapped.Counter](l); ok {
		n = max(n, int64(counter.Stats().Fallback.Instances))
	}
	i.n.Store(n)
	return n
}
