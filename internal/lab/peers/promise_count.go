// Promises about counts. No time has to pass in them, except for denials.

package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// crowd: 64 goroutines send 640 requests of one client to one instance, whose limit is 100 per hour. Exactly 100 are
// admitted, and every request has an answer. Where a limit refills a unit per second at least, the tolerance is that and
// 10 units.
func crowd(t *trial) (verdict, error) {
	return t.rush(1, 100, "client")
}

// instances: The same as concurrency, with four instances that share a redis-server 5 ms away. Each receives 160 of the
// requests. Five clients do so, one after the other, and the limit is 101 per hour, which four do not divide.
func instances(t *trial) (verdict, error) {
	t.distance = 5 * time.Millisecond
	return t.rush(4, 101, "first", "second", "third", "fourth", "fifth")
}

// turns is held by the trial that keeps the cores busy, so that no other limiter is slow because of it.
var turns sync.Mutex

// rush sends the requests of a crowd for each client. The instances have their connections then: up to three rehearsals open
// them, 12 s apart. On Redis before 7.2 go-zero's breaker counts a refused CLIENT SETINFO of each new connection, for 10 s.
func (t *trial) rush(instances, limit int, clients ...string) (v verdict, err error) {
	q := quota{limit, time.Hour}
	var opened []*limiter
	for range instances {
		l, err := t.open(q)
		if err != nil {
			return verdict{}, err
		}
		opened = append(opened, l)
	}
	for rehearsal := 0; t.library.store != "memory" && rehearsal < 3 && (rehearsal == 0 || v.colour == red); rehearsal++ {
		v, err = t.rushOf(fmt.Sprint("rehearsal", rehearsal), opened, q)
		if err != nil {
			return verdict{}, err
		}
		time.Sleep(12 * time.Second)
	}
	for _, client := range clients {
		if v, err = t.rushOf(client, opened, q); err != nil || v.colour == red {
			return v, err
		}
	}
	return v, err
}

func (t *trial) rushOf(client string, opened []*limiter, q quota) (verdict, error) {
	if !t.library.queues {
		turns.Lock()
		defer turns.Unlock()
	}
	var admitted, failed atomic.Int64
	var first atomic.Value
	begin := time.Now()
	var all sync.WaitGroup
	for g := range 64 {
		all.Go(func() {
			for range 10 {
				a, err := opened[g%len(opened)].take(client)
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
	case n > q.requests+t.extra(begin):
		return broken("%d of 640 requests were admitted at a limit of %d, in %.1f s", n, q.requests, time.Since(begin).Seconds())
	case failed.Load() > 0:
		return broken("%d of 640 requests had no answer but an error: %v", failed.Load(), first.Load())
	case n < q.requests:
		return broken("only %d of 640 requests were admitted at a limit of %d", n, q.requests)
	}
	return kept("%d of 640 requests were admitted", n)
}

// denial: 14 clients use all of 10 per 4 s. Seven of them send 20 more requests, which are denied. After 1 to 9 s each of these
// seven is admitted as often as its twin that was quiet. Where requests have costs, a denied cost of 5 leaves the tenth
// of ten units to a cost of 1. The tolerance is one request.
func denial(t *trial) (verdict, error) {
	q := quota{10, 4 * time.Second}
	l, err := t.open(q)
	if err != nil {
		return verdict{}, err
	}
	if l.takeN != nil {
		if v, err := deniedCost(t); err != nil || v.colour == red {
			return v, err
		}
	}
	twins := func(i int) (quiet, loud string) { return fmt.Sprint("quiet", i), fmt.Sprint("loud", i) }
	delays := []time.Duration{1, 2, 3, 4, 5, 7, 9}
	begin := time.Now()
	for i := range delays {
		quiet, loud := twins(i)
		for range q.requests {
			if err := l.each(quiet, loud); err != nil {
				return verdict{}, err
			}
		}
		for range 20 {
			if _, err := l.take(loud); err != nil {
				return verdict{}, err
			}
		}
	}
	for i, delay := range delays {
		sleep(begin, delay*time.Second+200*time.Millisecond)
		quiet, loud := twins(i)
		var admitted [2]int
		for range 15 {
			for j, key := range []string{quiet, loud} {
				a, err := l.take(key)
				if err != nil {
					return verdict{}, err
				}
				if a.allowed {
					admitted[j]++
				}
			}
		}
		if admitted[1] < admitted[0]-1 {
			return broken("after %v a client whose requests were denied was admitted %d times, its quiet twin %d times", delay*time.Second, admitted[1], admitted[0])
		}
	}
	return kept("clients with and without denials are admitted alike")
}

// each takes one unit of each key.
func (l *limiter) each(keys ...string) error {
	for _, key := range keys {
		if _, err := l.take(key); err != nil {
			return err
		}
	}
	return nil
}

func deniedCost(t *trial) (verdict, error) {
	l, err := t.open(quota{10, time.Hour})
	if err != nil {
		return verdict{}, err
	}
	for _, cost := range []int{9, 5, 5, 5} {
		if _, err := l.takeN("costs", cost); err != nil {
			return verdict{}, err
		}
	}
	a, err := l.takeN("costs", 1)
	if err == nil && !a.allowed {
		return broken("a cost of 1 did not fit beside 9 of 10 after costs of 5 had been denied")
	}
	return verdict{}, err
}

// several: A client has 10 per hour, and the route 5 per hour. Twenty requests ask both limits in one call. Five are
// admitted, and the client has exactly 5 left.
func several(t *trial) (verdict, error) {
	l, err := t.open(quota{10, time.Hour})
	if err != nil {
		return verdict{}, err
	}
	both, left := 0, 0
	for range 20 {
		ok, err := l.both("client", "route", 5)
		if err != nil {
			return verdict{}, err
		}
		if ok {
			both++
		}
	}
	for range 10 {
		a, err := l.take("client")
		if err != nil {
			return verdict{}, err
		}
		if a.allowed {
			left++
		}
	}
	if both != 5 || left != 5 {
		return broken("%d requests were admitted by both limits, and then the client had %d left", both, left)
	}
	return kept("5 requests were admitted, and 5 of 10 were left")
}

// remaining: A new client's first request at 10 per second, 20 per second, 100 per minute and 1000 per hour leaves one less than
// the limit. At 10 per hour the figures count down to 0, and a denial says 0 or nothing.
func remaining(t *trial) (verdict, error) {
	for _, q := range []quota{{10, time.Second}, {20, time.Second}, {100, time.Minute}, {1000, time.Hour}} {
		l, err := t.open(q)
		if err != nil {
			return verdict{}, err
		}
		a, err := l.take(fmt.Sprint("first of ", q))
		if err != nil {
			return verdict{}, err
		}
		if a.remaining != q.requests-1 {
			return broken("after the first request at %d per %v, Remaining is %d", q.requests, q.window, a.remaining)
		}
	}
	l, err := t.open(quota{10, time.Hour})
	if err != nil {
		return verdict{}, err
	}
	for i := range 11 {
		a, err := l.take("down")
		if err != nil {
			return verdict{}, err
		}
		if want := max(0, 9-i); a.remaining != want && (a.allowed || a.remaining != untold) {
			return broken("after request %d at 10 per hour, Remaining is %d", i+1, a.remaining)
		}
	}
	return kept("figures count down from 9 to 0")
}

// burst: A new client asks for 11 units at a limit of 10 per hour. It is denied without a wait, because no wait helps,
// and then all of the 10 fit.
func burst(t *trial) (verdict, error) {
	l, err := t.open(quota{10, time.Hour})
	if err != nil {
		return verdict{}, err
	}
	a, err := l.takeN("large", 11)
	if err != nil {
		return verdict{}, err
	}
	if a.allowed {
		return broken("a cost of 11 was admitted at a limit of 10")
	}
	if a.wait != untold && a.wait != never {
		return broken("a cost of 11 at a limit of 10 received a wait of %v", a.wait.Round(time.Second))
	}
	for i := range 10 {
		if a, err = l.take("large"); err != nil {
			return verdict{}, err
		}
		if !a.allowed {
			return broken("after a denied cost of 11, only %d of 10 were admitted", i)
		}
	}
	return kept("denied, without a wait and without a charge")
}

// extra returns the units that a limiter with a least rate may have refilled. Its clock has whole seconds, and callers
// that disagree on the second refill it more than once.
func (t *trial) extra(since time.Time) int {
	if t.library.slowest == 0 {
		return 0
	}
	return 10 + int(time.Since(since)/t.library.slowest)
}
