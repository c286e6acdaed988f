//go:build !linux

package redistest

import "os/exec"

// dieWithParent does nothing: a test binary that is killed leaves its servers behind on this system.
func dieWithParent(*exec.Cmd) {}

// stopped always returns true: this system has no cheap way to find out whether a SIGSTOP has reached a process.
func stopped(int) bool { return true }
