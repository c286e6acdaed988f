package main

import (
	"context"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// mixes are batches of checks, as heavy as the limiter allows. The first one is the
// lightest possible, for comparison.
var mixes = []contestant{
	{"1 token bucket, admitted", holds(mix{checks: each(1, func(i int) algorithms.Check {
		return o1(i, algorithms.TokenBucket(1_000_000, time.Minute))
	})})},
	{"128 token buckets, admitted", holds(mix{checks: each(128, func(i int) algorithms.Check {
		return o1(i, algorithms.TokenBucket(1_000_000, time.Minute))
	})})},
	{"128 token buckets, denied", holds(mix{checks: each(128, func(i int) algorithms.Check {
		return o1(i, algorithms.TokenBucket(1, 24*time.Hour))
	})})},
	{"128 of four algorithms, 64 limits", holds(mix{checks: each(128, func(i int) algorithms.Check {
		return o1(i, bounded[i%len(bounded)](int64(1_000_000+i/2), time.Minute))
	})})},
	{"128 token buckets, 128 limits", holds(mix{checks: each(128, func(i int) algorithms.Check {
		return o1(i, algorithms.TokenBucket(int64(1_000_000+i), time.Minute))
	})})},
	{"128 forced, of four algorithms", holds(mix{checks: each(128, func(i int) algorithms.Check {
		c := o1(i, bounded[i%len(bounded)](1_000_000, time.Minute))
		c.Op = algorithms.Force
		return c
	})})},
	{"128 keys of 480 bytes", holds(mix{checks: each(128, func(i int) algorithms.Check {
		c := o1(i, algorithms.TokenBucket(1_000_000, time.Minute))
		c.Key += strings.Repeat("|"+strings.Repeat("x", 115), 4)
		return c
	})})},
	logMix("128 logs of 20, 18 expired", 128, 20, time.Minute-time.Microsecond, take1),
	logMix("25 logs of 100, 90 expired", 25, 100, time.Minute-time.Microsecond, take1),
	logMix("3 logs of 1 000, denied", 3, 1_000, 0, take1),
	logMix("3 logs of 1 000, denied 1 000", 3, 1_000, 0, func(c algorithms.Check) algorithms.Check {
		c.Cost, c.Decision = 1_000, algorithms.Decision{}
		return c
	}),
	logMix("3 logs of 1 000, 900 expired", 3, 1_000, time.Minute-time.Microsecond, take1),
	logMix("3 logs of 1 000, clock back", 3, 1_000, -time.Second, take1),
	logMix("3 logs of 1 000, return the oldest", 3, 1_000, 0, func(c algorithms.Check) algorithms.Check {
		c.Op = algorithms.Return
		return c
	}),
	logMix("3 logs of 1 000, grant 500", 3, 1_000, 0, grant500),
	unevenMix("3 uneven logs of 1 000, 500 expired", 3, 1_000, time.Minute-5*time.Microsecond, take1),
	unevenMix("3 uneven logs of 1 000, denied 1 000", 3, 1_000, 0, func(c algorithms.Check) algorithms.Check {
		c.Cost, c.Decision = 1_000, algorithms.Decision{}
		return c
	}),
	unevenMix("3 uneven logs of 1 000, denied 500", 3, 1_000, 0, func(c algorithms.Check) algorithms.Check {
		c.Cost, c.Decision = 500, algorithms.Decision{}
		return c
	}),
	unevenMix("3 uneven logs of 1 000, clock back", 3, 1_000, -5*time.Microsecond-100*time.Millisecond, take1),
	unevenMix("3 uneven logs of 1 000, grant 500", 3, 1_000, 0, grant500),
}

var bounded = []limited{
	algorithms.TokenBucket, algorithms.LeakyBucket, algorithms.SlidingWindowCounter, algorithms.FixedWindow,
}

func take1(c algorithms.Check) algorithms.Check {
	c.Decision = algorithms.Decision{}
	return c
}

func grant500(c algorithms.Check) algorithms.Check {
	c.Op, c.Cost, c.Decision = algorithms.Grant, 500, algorithms.Decision{}
	return c
}

func each(n int, check func(i int) algorithms.Check) func(*holder) []algorithms.Check {
	return func(*holder) []algorithms.Check {
		checks := make([]algorithms.Check, n)
		for i := range checks {
			checks[i] = check(i)
		}
		return checks
	}
}

// logMix makes n full logs, moves the clock by later, and sends one check to each log.
func logMix(name string, n, entries int, later time.Duration, ask func(taken algorithms.Check) algorithms.Check) contestant {
	return contestant{name, holds(mix{
		ready:  func(ctx context.Context, h *holder) error { return h.ready(ctx, n, entries, 1, later) },
		checks: func(h *holder) []algorithms.Check { return h.ask(ask) },
	})}
}

// unevenMix is logMix with an oldest entry of cost 2. Then the script cannot compute
// the units of a part of the log: it has to read its entries.
func unevenMix(name string, n, entries int, later time.Duration, ask func(taken algorithms.Check) algorithms.Check) contestant {
	return contestant{name, holds(mix{
		ready:  func(ctx context.Context, h *holder) error { return h.ready(ctx, n, entries, 2, later) },
		checks: func(h *holder) []algorithms.Check { return h.ask(ask) },
	})}
}

func (h *holder) ready(ctx context.Context, n, entries int, oldest int64, later time.Duration) error {
	if err := h.fillLogs(ctx, n, entries, oldest); err != nil {
		return err
	}
	h.clock.Add(later.Microseconds())
	return nil
}

func (h *holder) ask(ask func(taken algorithms.Check) algorithms.Check) []algorithms.Check {
	var checks []algorithms.Check
	for _, taken := range h.taken {
		checks = append(checks, ask(taken))
	}
	return checks
}
