// Promises about counts. No time has to pass in them, except for denials.

package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

func crowd(t *trial) verdict { return t.rush(1, 100, "client") }

func instances(t *trial) verdict {
	t.distance = 5 * time.Millisecond
	return t.rush(4, 101, "first", "second", "third", "fourth", "fifth")
}

// turns is held by the trial that keeps the cores busy, so that no other limiter is slow because of it.
var turns sync.Mutex

// rush sends the requests of a crowd for each client. A rehearsal opens the connections.
func (t *trial) rush(instances, limit int, clients ...string) (v verdict) {
	q := quota{limit, time.Hour}
	var opened []take
	for range instances {
		opened = append(opened, t.open(q))
	}
	rushOf("rehearsal", opened, q)
	for _, client := range clients {
		if v = rushOf(client, opened, q); v.Colour == red {
			break
		}
	}
	return v
}

func rushOf(client string, opened []take, q quota) verdict {
	turns.Lock()
	defer turns.Unlock()
	var admitted, failed atomic.Int64
	var first atomic.Value
	begin := time.Now()
	var all sync.WaitGroup
	for g := range 64 {
		all.Go(func() {
			for range 10 {
				a, err := opened[g%len(opened)](client, 1)
				if err != nil {
					failed.Add(1)
					first.CompareAndSwap(nil, err.Error())
				} else if a.allowed {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	n := int(admitted.Load())
	switch {
	case n > q.requests:
		return broken("%d of 640 requests were admitted at a limit of %d, in %.1f s", n, q.requests, time.Since(begin).Seconds())
	case failed.Load() > 0:
		return broken("%d of 640 requests had no answer but an error: %v", failed.Load(), first.Load())
	case n < q.requests:
		return broken("only %d of 640 requests were admitted at a limit of %d", n, q.requests)
	}
	return kept("%d of 640 requests were admitted", n)
}

func denial(t *trial) verdict {
	if t.library.costs {
		l := t.open(quota{10, time.Hour})
		for _, cost := range []int{9, 5, 5, 5} {
			l.ask("costs", cost)
		}
		if !l.ask("costs", 1).allowed {
			return broken("a cost of 1 did not fit beside 9 of 10 after costs of 5 had been denied")
		}
	}
	q := quota{10, 4 * time.Second}
	l := t.open(q)
	twins := func(i int) (quiet, loud string) { return fmt.Sprint("quiet", i), fmt.Sprint("loud", i) }
	delays := []time.Duration{1, 2, 3, 4, 5, 7, 9}
	begin := time.Now()
	for i := range delays {
		quiet, loud := twins(i)
		l.admitted(quiet, q.requests)
		l.admitted(loud, q.requests+20)
	}
	for i, delay := range delays {
		sleep(begin, delay*time.Second+200*time.Millisecond)
		quiet, loud := twins(i)
		var calm, denied int
		for range 15 {
			calm += l.admitted(quiet, 1)
			denied += l.admitted(loud, 1)
		}
		if denied < calm-1 {
			return broken("after %v a client whose requests were denied was admitted %d times, its quiet twin %d times", delay*time.Second, denied, calm)
		}
	}
	return kept("clients with and without denials are admitted alike")
}

func remaining(t *trial) verdict {
	for _, q := range []quota{{10, time.Second}, {20, time.Second}, {100, time.Minute}, {1000, time.Hour}} {
		if a := t.open(q).ask(fmt.Sprint("first of ", q), 1); a.remaining != q.requests-1 {
			return broken("after the first request at %d per %v, Remaining is %d", q.requests, q.window, a.remaining)
		}
	}
	l := t.open(quota{10, time.Hour})
	for i := range 11 {
		a := l.ask("down", 1)
		if want := max(0, 9-i); a.remaining != want && (a.allowed || a.remaining != untold) {
			return broken("after request %d at 10 per hour, Remaining is %d", i+1, a.remaining)
		}
	}
	return kept("figures count down from 9 to 0")
}

func burst(t *trial) verdict {
	l := t.open(quota{10, time.Hour})
	a := l.ask("large", 11)
	if a.allowed {
		return broken("a cost of 11 was admitted at a limit of 10")
	}
	if a.wait != untold && a.wait != never {
		return broken("a cost of 11 at a limit of 10 received a wait of %v", a.wait.Round(time.Second))
	}
	if n := l.admitted("large", 10); n < 10 {
		return broken("after a denied cost of 11, only %d of 10 were admitted", n)
	}
	return kept("denied, without a wait and without a charge")
}
