// Promises about time.

package main

import (
	"fmt"
	"time"
)

// phase waits until the clock stands at a phase of windows that are aligned to it.
func phase(window, at time.Duration) time.Time {
	now := time.Now()
	time.Sleep((at - now.Sub(now.Truncate(window)) + window) % window)
	return time.Now()
}

// wait: In the middle of a window of the clock, and of one that began when the limiter was made, 80 clients use all of 5
// per 10 s, and each reads its Retry-After. Every 250 ms another of them tries again, until one is admitted. That is the
// true wait. Retry-After is not shorter, and at most a second longer where it is in whole seconds. The tolerance is
// 0.6 s.
func wait(t *trial) (verdict, error) {
	const step, tolerance = 250 * time.Millisecond, 600 * time.Millisecond
	q := quota{5, 10 * time.Second}
	made := phase(q.window, 0)
	l, err := t.open(q)
	if err != nil {
		return verdict{}, err
	}
	sleep(made, q.window/2)
	begin := time.Now()
	var told answer
	for i := range 80 {
		for range q.requests + 1 {
			if told, err = l.take(fmt.Sprint("client", i)); err != nil {
				return verdict{}, err
			}
		}
	}
	if told.allowed {
		return verdict{}, fmt.Errorf("request %d was admitted at %v", q.requests+1, q)
	}
	if told.unreadable != "" {
		return broken("Retry-After: %s is neither seconds nor an HTTP-date", told.unreadable)
	}
	if told.wait == untold {
		return broken("a denial says nothing of a wait")
	}
	truth := time.Duration(0)
	for i := range 80 {
		sleep(begin, time.Duration(i+1)*step)
		a, err := l.take(fmt.Sprint("client", i))
		if err != nil {
			return verdict{}, err
		}
		if a.allowed {
			truth = time.Since(begin)
			break
		}
	}
	late := tolerance
	if l.wholeSeconds {
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

// skew: Four instances share 100 per 10 s, and the clock of one of them is 2 s late. Each receives 100 requests of one client, in turn. At most
// 110 of the 400 are admitted, beside what refills meanwhile.
func skew(t *trial) (verdict, error) {
	q := quota{100, 10 * time.Second}
	var opened []*limiter
	for i := range 4 {
		if t.late = 0; i == 3 {
			t.late = 2 * time.Second
		}
		l, err := t.open(q)
		if err != nil {
			return verdict{}, err
		}
		opened = append(opened, l)
	}
	begin, admitted := phase(q.window, q.window/2), 0 // no window turns meanwhile
	for range 100 {
		for _, l := range opened {
			a, err := l.take("client")
			if err != nil {
				return verdict{}, err
			}
			if a.allowed {
				admitted++
			}
		}
	}
	if admitted > 110+t.library.refilled(q, time.Since(begin)) {
		return broken("%d of 400 requests were admitted at a limit of 100 per 10 s", admitted)
	}
	return kept("%d of 400 requests were admitted", admitted)
}

// expiry: In Redis, 200 clients come once at 10 per second. Every key has an expiry, and after 10 s no key is left. In
// memory, 20 000 clients come once, and every 12 s another 20 000, while one client sends requests all the time. The
// fourth crowd leaves the heap at most three times as large as the first. Limiters are configured to forget early,
// where they can be.
func expiry(t *trial) (verdict, error) {
	if t.library.store == "memory" {
		return expiryInMemory(t)
	}
	l, err := t.open(quota{10, time.Second})
	if err != nil {
		return verdict{}, err
	}
	for i := range 200 {
		if _, err := l.take(fmt.Sprint("client", i)); err != nil {
			return verdict{}, err
		}
	}
	c := t.client()
	stored, err := c.Keys(t.ctx(), "*").Result()
	if err != nil {
		return verdict{}, err
	}
	for _, key := range stored {
		if ttl := c.PTTL(t.ctx(), key).Val(); ttl == -1 {
			return broken("the key %q never expires", key)
		}
	}
	time.Sleep(10 * time.Second)
	left, err := c.Keys(t.ctx(), "*client*").Result()
	if err != nil {
		return verdict{}, err
	}
	if len(left) > 0 {
		return broken("after ten windows, %d of %d keys are left", len(left), len(stored))
	}
	return kept("no key of a client is left after 10 s")
}
