//go:build unix

package redistest

import "syscall"

const (
	sigStop     = syscall.SIGSTOP
	sigContinue = syscall.SIGCONT
)

// A descriptor names an open file to the system.
type descriptor = int
