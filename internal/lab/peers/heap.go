// Keys in memory: how much of the heap they hold after a while. Each library has a process of its own, so that no other
// garbage counts.

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"
)

func expiryInMemory(t *trial) (verdict, error) {
	self, err := os.Executable()
	if err != nil {
		return verdict{}, err
	}
	ctx, cancel := context.WithTimeout(t.ctx(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, self, "-heap", t.library.name, t.library.store).Output()
	if err != nil {
		return verdict{}, fmt.Errorf("-heap: %w", err)
	}
	var full, more int64
	if _, err := fmt.Sscan(string(out), &full, &more); err != nil {
		return verdict{}, err
	}
	if more > 2*full {
		return broken("20 000 clients took %d kB, and 60 000 more another %d kB", full/1000, more/1000)
	}
	return kept("20 000 clients took %d kB, and 60 000 more another %d kB", full/1000, max(0, more)/1000)
}

// measureHeap prints how many bytes 20 000 clients took, and how many 60 000 others take later. Maps of Go never shrink,
// so one crowd that is gone would say nothing.
func measureHeap(t *trial) error {
	l, err := t.open(quota{10, time.Second})
	if err != nil {
		return err
	}
	before := heap()
	var waves []int64
	for wave := range 4 {
		for i := range 20_000 {
			if _, err := l.take(fmt.Sprint("client", wave, "-", i)); err != nil {
				return err
			}
		}
		waves = append(waves, heap()-before)
		for range 120 {
			time.Sleep(100 * time.Millisecond)
			if _, err := l.take("another"); err != nil {
				return err
			}
		}
	}
	fmt.Println(waves[0], waves[3]-waves[0])
	runtime.KeepAlive(l)
	return nil
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
