// Measures of several processes: crowds of callers, and hot keys.
//
// The run with hot keys draws the k-th of 10 000 keys with a probability proportional
// to 1 / k^1.1. The sum of these for all keys is 6.6, so the hottest key has 1/6.6 or
// 15 % of all checks, and the second one 0.47 times as many. A short run without
// denials counts the checks of the hottest key per window. The limit of every key is
// 0.65 of that. So 35 % of the hottest key's checks are denied, which is 5 % of all
// checks. No other key reaches the limit, because 0.47 is below 0.65.

package main

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const workers = 4

var zipf = new(zipfRun)

var processMeasures = []measure{{
	name:    "redis-crowd",
	title:   "Redis, 256 callers in one process or in eight, 10 000 keys",
	plan:    plan{callers: 256, keys: 10_000, quota: perMinute, warmUp: second / 5, lasts: second},
	figures: []figure{checksPerSecond, p50, p99, serverCPU},
	contestants: []contestant{
		{"eight processes", crowd(8)},
		{"one process", crowd(1)},
	},
	bars: []bar{{figure: serverCPU, who: "eight processes", against: []string{"one process"}, atMost: 1.5, why: whyCrowd}},
}, {
	name:    "redis-zipf",
	title:   "Redis, four processes, Zipf-distributed keys (exponent 1.1) of 10 000, fixed windows",
	plan:    plan{callers: 64, keys: 10_000, warmUp: second, lasts: 3 * second},
	figures: []figure{checksPerSecond, p50, p99, serverCPU, denied, overAdmitted, underAdmitted},
	contestants: []contestant{
		{us, zipf.start("penstock")},
		{"redis_rate", zipf.start("redis_rate")},
		{"no limiter", zipf.start("none")},
	},
	bars: []bar{
		{figure: checksPerSecond, against: []string{"redis_rate"}, atLeast: 3},
		{figure: overAdmitted, atMost: 0, firm: true},
		{figure: underAdmitted, atMost: 1},
		{figure: denied, atMost: 10},
	},
}}

// crowd measures the plan's callers in so many processes.
func crowd(processes int) start {
	return func(_ context.Context, s *stage, p plan) (round, error) {
		limit := algorithms.TokenBucket(p.quota.requests, p.quota.window)
		j := job{
			Addr: s.server.addr, Limiter: "penstock", Limit: limit.String(),
			Callers: p.callers / processes, Keys: p.keys, WarmUp: p.warmUp, Lasts: p.lasts,
		}
		return func(ctx context.Context) (sample, error) {
			_, got, err := j.measured(ctx, s, processes)
			return got, err
		}, nil
	}
}

// measured runs a job in so many processes. It returns their yields in one, and the
// figures.
func (j job) measured(ctx context.Context, s *stage, processes int) (yield, sample, error) {
	if err := s.server.flush(ctx); err != nil {
		return yield{}, nil, err
	}
	before, err := s.usage(ctx, true)
	if err != nil {
		return yield{}, nil, err
	}
	yields, err := j.together(ctx, processes)
	if err != nil {
		return yield{}, nil, err
	}
	after, err := s.usage(ctx, true)
	all := sumOf(yields)
	return all, sample{
		checksPerSecond: float64(all.Checks) / j.Lasts.Seconds(),
		serverCPU:       (after.server - before.server) / float64(max(all.AllChecks, 1)),
		p50:             micros(all.Latencies.quantile(0.5)),
		p99:             micros(all.Latencies.quantile(0.99)),
	}, err
}

// A zipfRun measures contestants with a few hot keys. All of them have the same
// limit.
type zipfRun struct{ limit algorithms.Limit }

const (
	zipfWindow   = time.Second
	zipfExponent = 1.1

	// zipfShare is the part of the hottest key's checks that the limit admits.
	zipfShare = 0.65
)

func (z *zipfRun) start(limiter string) start {
	return func(ctx context.Context, s *stage, p plan) (round, error) {
		j := job{
			Addr: s.server.addr, Limiter: limiter, Callers: p.callers, Keys: p.keys,
			Exponent: zipfExponent, WarmUp: p.warmUp, Lasts: p.lasts,
		}
		if z.limit.Requests() == 0 {
			if err := z.choose(ctx, s, j); err != nil {
				return nil, err
			}
		}
		j.Limit = z.limit.String()
		return func(ctx context.Context) (sample, error) {
			all, got, err := j.measured(ctx, s, workers)
			if err == nil && limiter == "penstock" {
				z.judge(&all, got)
			}
			return got, err
		}, nil
	}
}

// choose sets the limit, at the pace of penstock.
func (z *zipfRun) choose(ctx context.Context, s *stage, j job) error {
	j.Limiter, j.Limit = "penstock", algorithms.FixedWindow(1_000_000_000, zipfWindow).String()
	all, _, err := j.measured(ctx, s, workers)
	hottest := 0
	for at, n := range all.Admitted {
		if at.Key == 0 {
			hottest += n
		}
	}
	perWindow := float64(hottest) / float64(j.WarmUp+j.Lasts) * float64(zipfWindow)
	z.limit = algorithms.FixedWindow(max(1, int64(zipfShare*perWindow)), zipfWindow)
	return err
}

// judge counts the units above and below the limit. For the units below, it uses only
// windows within the measured part that denied a check.
func (z *zipfRun) judge(all *yield, got sample) {
	most := int(z.limit.Requests())
	above, lacking, full, denials := 0, 0, 0, 0
	for _, n := range all.Admitted {
		above += max(0, n-most)
	}
	first, last := windowOf(all.Begin, zipfWindow)+1, windowOf(all.End, zipfWindow)
	for at, n := range all.Denied {
		denials += n
		if first < at.Window && at.Window < last {
			full += most
			lacking += max(0, most-all.Admitted[at])
		}
	}
	got[overAdmitted] = float64(above)
	got[underAdmitted] = 100 * float64(lacking) / float64(max(full, 1))
	got[denied] = 100 * float64(denials) / float64(max(all.AllChecks, 1))
}
