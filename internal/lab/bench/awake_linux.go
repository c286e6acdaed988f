package main

import (
	"io"
	"os"
)

// keepAwake asks the kernel to let no idle processor sleep until the result is closed.
// The proxy waits most of the time, and so do few callers. A processor of a virtual
// machine that sleeps takes tens of microseconds to wake up, so the proxy would be late,
// and a network is not.
//
// The kernel remembers the request while the file is open. Its four bytes are the longest
// time that a processor may take to wake up, in microseconds (Linux,
// Documentation/power/pm_qos_interface.rst). Only root may open it.
func keepAwake() (io.Closer, error) {
	f, err := os.OpenFile("/dev/cpu_dma_latency", os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(make([]byte, 4)); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
