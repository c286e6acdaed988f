// The promise about refunds.

package main

import (
	"fmt"
	"time"
)

// refund: A client takes all of 10 per 4 s, and gives 4 back. Exactly 4 more fit. Another takes 5, and gives them back
// after 9 s, when all are free again. Then 10 fit, and not more. The tolerance is what refills meanwhile.
func refund(t *trial) (verdict, error) {
	l, err := t.open(quota{10, time.Hour})
	if err != nil {
		return verdict{}, err
	}
	taken, giveBack, err := l.borrow("used", 10)
	if err != nil || !taken {
		return verdict{}, fmt.Errorf("10 of 10: %t, %w", taken, err)
	}
	if err := giveBack(4); err != nil {
		return verdict{}, err
	}
	if n, err := l.fit("used", 8); err != nil || n != 4 {
		return broken("after 4 of 10 units were given back, %d fit (%v)", n, err)
	}
	q := quota{10, 4 * time.Second}
	if l, err = t.open(q); err != nil {
		return verdict{}, err
	}
	if _, giveBack, err = l.borrow("late", 5); err != nil {
		return verdict{}, err
	}
	time.Sleep(9 * time.Second)
	begin := time.Now()
	if err := giveBack(5); err != nil {
		return verdict{}, err
	}
	n, err := l.fit("late", 20)
	if err != nil || n > 10+t.library.refilled(q, time.Since(begin)) {
		return broken("after 5 units had been given back late, %d of 10 fit (%v)", n, err)
	}
	return kept("4 of 4 units that were given back fit, and a late refund added none")
}

// fit returns how many of n units fit, one by one, and keeps them.
func (l *limiter) fit(key string, n int) (fit int, err error) {
	for range n {
		taken, giveBack, err := l.borrow(key, 1)
		if err != nil {
			return fit, err
		}
		if taken {
			fit++
		}
		if err := giveBack(0); err != nil {
			return fit, err
		}
	}
	return fit, nil
}
