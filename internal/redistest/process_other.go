//go:build !linux

package redistest

import "os/exec"

// dieWithParent does nothing: a test binary that is killed leaves its servers behind on this system.
func dieWithParent(*exec.Cmd) {}

// stopped reports whether a SIGSTOP has reached the process; this system has no cheap way to tell.
func stopped(int) bool { return true }
