// The subject for Memory, against which other limiters are compared.

package limitertest

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// Memory returns the subject for [algorithms.Memory].
func Memory() Subject {
	return Subject{
		New: func(tb testing.TB, now func() time.Time) algorithms.Limiter {
			tb.Helper()
			return algorithms.NewMemory(&algorithms.MemoryOptions{Now: ExceptForSweeps(now)})
		},
		Source: algorithms.Local,
		Traces: 300,
	}
}

// ExceptForSweeps returns a clock that stands still for sweeps, in which a Memory forgets full keys. Nil remains nil.
//
// Traces set the clock ahead and back. A sweep in between would forget a key that the step back makes count again,
// and would do so at an instant that depends on real time. The store that Memory is compared with forgets no key in
// the time of a trace. A sweep reads the clock itself, in a function whose name ends in ".sweep", so it is found
// among the callers. In 1970 no key is full again.
func ExceptForSweeps(now func() time.Time) func() time.Time {
	if now == nil {
		return nil
	}
	return func() time.Time {
		var callers [4]uintptr
		frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
		for {
			frame, more := frames.Next()
			if strings.HasSuffix(frame.Function, ".sweep") {
				return time.UnixMicro(0)
			}
			if !more {
				return now()
			}
		}
	}
}
