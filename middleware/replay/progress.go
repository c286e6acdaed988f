// The progress line of a long replay.

package replay

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// A progress tells how far a long replay is.
type progress struct {
	text atomic.Value // func(time.Duration) string
	stop chan struct{}
	done chan struct{}
}

// show sets what returns how far the replay is after some time.
func (p *progress) show(text func(time.Duration) string) { p.text.Store(text) }

// begin writes a line each second, after the first one.
func begin(out io.Writer) *progress {
	p := &progress{stop: make(chan struct{}), done: make(chan struct{})}
	begun := time.Now()
	go func() {
		defer close(p.done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		written := false
		for {
			select {
			case <-tick.C:
				written = true
				text, _ := p.text.Load().(func(time.Duration) string)
				fmt.Fprintf(out, "\r%-70s", text(time.Since(begun)))
			case <-p.stop:
				if written {
					fmt.Fprintf(out, "\r%-70s\r", "")
				}
				return
			}
		}
	}()
	return p
}

func (p *progress) end() {
	close(p.stop)
	<-p.done
}

// progress tells what has been read after some time, and how long the rest will take.
func (l *log) progress(after time.Duration) string {
	read := l.read.Load()
	text := fmt.Sprintf("%v: %d MB read", after.Round(time.Second), read>>20)
	if l.size == 0 || read == 0 {
		return text
	}
	left := time.Duration(float64(after) * float64(l.size-read) / float64(read))
	return fmt.Sprintf("%s of %d MB (%d %%), about %v left", text, l.size>>20, read*100/l.size, max(0, left.Round(time.Second)))
}

// progress tells how many trials have ended. How many follow depends on their results.
func (h *history) progress(after time.Duration) string {
	return fmt.Sprintf("%v: trying other limits, %d so far", after.Round(time.Second), h.trials.Load())
}
