package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
)

const (
	// workerEnv holds the address of the Redis that a process of this program
	// is to use a limit up on, and the limit.
	workerEnv = "PENSTOCK_BENCH_WORKER"

	workers       = 4
	workerCallers = 16
	workerLasts   = 10 * time.Second // at most

	// workerInsists is for how long callers ask on after a denial: another
	// process may give back what it held, and a denial is remembered for 1 s.
	workerInsists = 1500 * time.Millisecond
)

// usedUp measures what four processes admit that use up one limit together:
// each takes from one key, with leases, until its callers are denied for good.
func usedUp(_ context.Context, s *stage, _ plan) (round, error) {
	// No window turns while it runs.
	limit := algorithms.FixedWindow(1_000_000, 400*24*time.Hour)
	if s.quick {
		limit = algorithms.FixedWindow(20_000, 400*24*time.Hour)
	}
	return func(ctx context.Context) (sample, error) {
		if err := s.server.flush(ctx); err != nil {
			return nil, err
		}
		var admitted [workers]int64
		var errs [workers]error
		var group sync.WaitGroup
		for i := range workers {
			group.Go(func() { admitted[i], errs[i] = worker(ctx, s.server.addr, limit) })
		}
		group.Wait()
		var sum int64
		for _, n := range admitted {
			sum += n
		}
		most := limit.Requests()
		return sample{
			overAdmitted:  float64(max(0, sum-most)),
			underAdmitted: 100 * float64(max(0, most-sum)) / float64(most),
		}, errors.Join(errs[:]...)
	}, nil
}

// worker runs a process of this program, and returns what it has admitted.
func worker(ctx context.Context, addr string, limit algorithms.Limit) (admitted int64, err error) {
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), workerEnv+"="+addr+" "+limit.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("a process: %w", err)
	}
	_, err = fmt.Sscan(string(out), &admitted)
	return admitted, err
}

// work is what such a process does. It writes how much it has admitted.
func work(ctx context.Context, task string, out io.Writer) error {
	addr, text, _ := strings.Cut(task, " ")
	limit, err := algorithms.ParseLimit(text)
	if err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	limiter, err := shared.New(client, &shared.Options{
		Deadline: time.Minute, // a slow machine is no outage
		Lease:    &shared.LeaseOptions{},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, workerLasts)
	defer cancel()
	takes := takesOf(limiter, limit)
	var admitted atomic.Int64
	var group sync.WaitGroup
	var failure atomic.Pointer[error]
	for range workerCallers {
		group.Go(func() {
			ask := takes()
			for last := time.Now(); time.Since(last) < workerInsists; {
				ok, err := ask(ctx, userKey(0))
				if err != nil {
					failure.Store(&err)
					return
				}
				if ok {
					admitted.Add(1)
					last = time.Now()
				} else {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	group.Wait()
	if err := failure.Load(); err != nil {
		return *err
	}
	fmt.Fprintln(out, admitted.Load())
	return limiter.Close()
}
