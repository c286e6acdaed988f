// Promise 8: goroutines, heap and connections after Close.

package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"time"
)

const (
	// endsWithin is how long goroutines may take to end after Close: a client waits
	// its ReadTimeout for replies.
	endsWithin = 10 * time.Second
	// The leg and the runtime may keep so much. It is less than one goroutine per
	// instance, and less than one limiter.
	moreRoutines = 2
	moreHeap     = 4 << 20 // bytes
)

// A size holds the goroutines and the heap of this process.
type size struct {
	routines int
	heap     uint64
}

func measure() size {
	runtime.GC()
	runtime.GC() // the second collection frees the contents of pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return size{routines: runtime.NumGoroutine(), heap: m.HeapAlloc}
}

func (s size) String() string {
	return fmt.Sprintf("%d goroutines, %.1f MB", s.routines, float64(s.heap)/(1<<20))
}

// judgeGrowth checks promise 8. Call it when everything is closed.
func (l *leg) judgeGrowth(before size) {
	var after size
	var conns int64
	for end := time.Now().Add(endsWithin); time.Now().Before(end); time.Sleep(100 * tick) {
		after, conns = measure(), 0
		for _, in := range l.instances {
			conns += in.conns.Load()
		}
		if after.routines <= before.routines && conns == 0 {
			break
		}
	}
	l.say("%-13s before: %v; after: %v, %d connections", "closed", before, after, conns)
	if conns > 0 {
		l.broken("%d connections are open %v after Close", conns, endsWithin)
	}
	if after.routines > before.routines+moreRoutines {
		l.broken("%d goroutines after Close, %d before the start", after.routines, before.routines)
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
	}
	if after.heap > before.heap+moreHeap {
		l.broken("%d bytes of heap after Close, %d before the start", after.heap, before.heap)
	}
}
