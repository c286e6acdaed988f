package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/penstock-go/penstock/internal/lab/command"
)

// phase waits until the clock stands at a phase of windows that are aligned to it.
func phase(window, at time.Duration) time.Time {
	now := time.Now()
	time.Sleep((at - now.Sub(now.Truncate(window)) + window) % window)
	return time.Now()
}

func wait(t *trial) verdict {
	const step, tolerance = 250 * time.Millisecond, 600 * time.Millisecond
	q := quota{5, 10 * time.Second}
	made := phase(q.window, 0)
	l := t.open(q)
	sleep(made, q.window/2)
	begin := time.Now()
	var told answer
	for i := range 80 {
		l.admitted(fmt.Sprint("client", i), q.requests)
		told = l.ask(fmt.Sprint("client", i), 1)
	}
	switch {
	case told.allowed:
		t.Fatalf("request %d was admitted at %v", q.requests+1, q)
	case told.unreadable != "":
		return broken("Retry-After: %s is neither seconds nor an HTTP-date", told.unreadable)
	case told.wait == untold:
		return broken("a denial says nothing of a wait")
	}
	truth := time.Duration(0)
	for i := 0; i < 80 && truth == 0; i++ {
		sleep(begin, time.Duration(i+1)*step)
		if l.ask(fmt.Sprint("client", i), 1).allowed {
			truth = time.Since(begin)
		}
	}
	late := tolerance
	if t.library.handler != nil {
		late += time.Second
	}
	switch text := fmt.Sprintf("told to wait %.1f s, the client could have been admitted after %.1f s", told.wait.Seconds(), truth.Seconds()); {
	case truth == 0:
		return broken("told to wait %.1f s, no client was admitted within 20 s", told.wait.Seconds())
	case told.wait < truth-tolerance:
		return broken("too early: %s", text)
	case told.wait > truth+late:
		return broken("too late: %s", text)
	default:
		return kept("%s", text)
	}
}

func skew(t *trial) verdict {
	q := quota{100, 10 * time.Second}
	var opened []take
	for range 3 {
		opened = append(opened, t.open(q))
	}
	t.late = 2 * time.Second
	opened = append(opened, t.open(q))
	begin, admitted := phase(q.window, q.window/2), 0 // no window turns meanwhile
	for range 100 {
		for _, l := range opened {
			admitted += l.admitted("client", 1)
		}
	}
	if refilled := int(time.Since(begin)/q.every()) + 1; admitted > 110+refilled {
		return broken("%d of 400 requests were admitted at a limit of 100 per 10 s", admitted)
	}
	return kept("%d of 400 requests were admitted", admitted)
}

func expiry(t *trial) verdict {
	l := t.open(quota{10, time.Second})
	if t.library.store == "memory" {
		return l.heapShrinks()
	}
	for i := range 200 {
		l.ask(fmt.Sprint("client", i), 1)
	}
	c := t.client()
	stored := c.Keys(t.Context(), "*").Val()
	for _, key := range stored {
		if ttl := c.PTTL(t.Context(), key).Val(); ttl == -1 {
			return broken("the key %q never expires", key)
		}
	}
	time.Sleep(10 * time.Second)
	if left := len(c.Keys(t.Context(), "*client*").Val()); left > 0 || len(stored) == 0 {
		return broken("after ten windows, %d of %d keys are left", left, len(stored))
	}
	return kept("no key of a client is left after 10 s")
}

// heapShrinks compares how many bytes 20 000 clients take, and how many 60 000 others take later. Maps of Go never shrink,
// so one crowd that is gone would say nothing.
func (l take) heapShrinks() verdict {
	before := command.Heap()
	var waves []int64
	for wave := range 4 {
		for i := range 20_000 {
			l.ask(fmt.Sprint("client", wave, "-", i), 1)
		}
		waves = append(waves, command.Heap()-before)
		for range 120 {
			time.Sleep(100 * time.Millisecond)
			l.ask("another", 1)
		}
	}
	runtime.KeepAlive(l)
	full, more := waves[0], waves[3]-waves[0]
	what := fmt.Sprintf("20 000 clients took %d kB, and 60 000 more another %d kB", full/1000, max(0, more)/1000)
	if more > 2*full {
		return broken("%s", what)
	}
	return kept("%s", what)
}
