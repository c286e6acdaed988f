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

// ExceptForSweeps returns a clock that stands still while a Memory forgets full keys, for traces that set the clock
// back. Nil remains nil.
func ExceptForSweeps(now func() time.Time) func() time.Time {
	if now == nil {
		return nil
	}
	// A sweep reads the clock in a function whose name ends in .sweep. In 1970 no key
	// is full again.
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
