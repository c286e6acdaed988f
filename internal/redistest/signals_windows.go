package redistest

import "syscall"

// Windows has no such signals. A test that sends one fails.
const (
	sigStop     = syscall.Signal(19)
	sigContinue = syscall.Signal(18)
)

// A descriptor names an open file to the system.
type descriptor = syscall.Handle
