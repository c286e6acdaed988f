// Promises about an outage of Redis.

package main

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// The course of an outage.
const (
	outageUp   = 8 * time.Second // penstock needs 5 s to count the instances
	outageDown = 6 * time.Second
	outagePace = 40 // requests per second, of one client to both instances in turn
	patience   = 2 * time.Second
)

var outageQuota = quota{20, time.Second}

// outageAnswers: Two instances share 20 per second, and one client sends 40 per second. After 8 s redis-server is killed. In the
// next 6 s at least 99 of 100 requests are admitted or denied, 95 of 100 within 1.5 s. An error, a panic, and no answer
// within 2 s are no answers.
func outageAnswers(t *trial) (verdict, error) {
	f, err := t.outage()
	if err != nil {
		return verdict{}, err
	}
	if f.answered < 0.99 || f.p95 > 1500*time.Millisecond {
		return broken("%v", f)
	}
	return kept("%v", f)
}

// outageLimit: In the same outage, both instances together admit at most 20 per second and two bursts of 20.
func outageLimit(t *trial) (verdict, error) {
	f, err := t.outage()
	if err != nil {
		return verdict{}, err
	}
	if most := int(outageQuota.perSecond()*outageDown.Seconds()) + 2*outageQuota.requests; f.admitted > most {
		return broken("%v; the limit and two bursts are %d", f, most)
	}
	return kept("%v", f)
}

// figures are the answers while Redis is away.
type figures struct {
	answered float64 // of all requests
	admitted int
	sent     int
	p95      time.Duration
}

func (f figures) String() string {
	return fmt.Sprintf("of %d requests in 6 s without Redis, %.0f %% had an answer and %d were admitted; 95 of 100 took at most %d ms",
		f.sent, 100*f.answered, f.admitted, f.p95.Milliseconds())
}

// outage sends requests while redis-server dies.
func (t *trial) outage() (figures, error) {
	var instances [2]*limiter
	for i := range instances {
		l, err := t.open(outageQuota)
		if err != nil {
			return figures{}, err
		}
		instances[i] = l
	}
	var mu sync.Mutex
	var took []time.Duration
	var f figures
	answered := 0
	begin := time.Now()
	var all sync.WaitGroup
	for i := range int((outageUp + outageDown).Seconds() * outagePace) {
		at := time.Duration(i) * time.Second / outagePace
		sleep(begin, at)
		if at == outageUp {
			t.server.Kill()
		}
		all.Go(func() {
			a, d, err := timed(instances[i%2])
			if at < outageUp {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			f.sent++
			took = append(took, d)
			if err == nil {
				answered++
			}
			if err == nil && a.allowed {
				f.admitted++
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	f.answered, f.p95 = float64(answered)/float64(f.sent), took[len(took)*95/100]
	return f, nil
}

// timed is a request of a client that waits for at most its patience.
func timed(l *limiter) (answer, time.Duration, error) {
	type result struct {
		answer
		err error
	}
	begin, done := time.Now(), make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if reason := recover(); reason != nil {
				r.err = fmt.Errorf("panic: %v", reason)
			}
			done <- r
		}()
		r.answer, r.err = l.take("client")
	}()
	select {
	case r := <-done:
		return r.answer, time.Since(begin), r.err
	case <-time.After(patience):
		return answer{}, patience, fmt.Errorf("no answer within %v", patience)
	}
}
