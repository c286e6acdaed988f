package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuOf returns the CPU time of a process. It numbers the process's clock as
// clock_getcpuclockid(3) does.
func cpuOf(pid int) (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|2), &t)
	return time.Duration(t.Nano()), err
}
