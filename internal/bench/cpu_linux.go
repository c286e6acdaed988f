package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuOf returns the CPU time of a process. Its clock's number is that of
// clock_getcpuclockid(3).
func cpuOf(pid int) (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|2), &t)
	return time.Duration(t.Nano()), err
}
