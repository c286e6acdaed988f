// Command accuracy compares each algorithm with an exact log of its own admissions, under
// traffic of several shapes, for limits from 5 to 10 000 per minute. It writes the page
// ACCURACY.md. The traffic comes from a seed and the time is simulated, so each run writes the
// same page.
package main

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/lab/command"
)

const (
	pageFile = "ACCURACY.md"
	window   = time.Minute
	minute   = int64(window / time.Microsecond)
)

// limits are per minute.
var limits = []int64{5, 20, 100, 1_000, 10_000}

// A subject is an algorithm with a limit per minute.
type subject struct {
	name string
	make func(limit int64) algorithms.Limit
}

var subjects = []subject{
	{"SlidingWindowCounter", func(n int64) algorithms.Limit { return algorithms.SlidingWindowCounter(n, window) }},
	{"SlidingWindowLog", func(n int64) algorithms.Limit { return algorithms.SlidingWindowLog(n, window) }},
	{"FixedWindow", func(n int64) algorithms.Limit { return algorithms.FixedWindow(n, window) }},
	{"TokenBucket", func(n int64) algorithms.Limit { return algorithms.TokenBucket(n, window) }},
	{"TokenBucket, burst 1/5", func(n int64) algorithms.Limit { return algorithms.TokenBucket(n, window).WithBurst(n / 5) }},
	{"LeakyBucket", func(n int64) algorithms.Limit { return algorithms.LeakyBucket(n, window) }},
}

func main() {
	folder := flag.String("o", ".", "write the page into this `folder`")
	flag.Parse()
	command.Exit("accuracy", os.WriteFile(filepath.Join(*folder, pageFile), []byte(page()), 0o644))
}

// A run is one key under one limit. Instants are in µs.
type run struct {
	limit  algorithms.Limit
	memory *algorithms.Memory
	random *rand.Rand
	now    int64

	own, log admissions // what the algorithm has admitted, and what an exact log would have
	tally
}

// A tally compares an algorithm with the limit, in every window that ends with a request.
type tally struct {
	requests, admitted, logged int64
	most                       int64 // admitted in a window
	above                      int64 // sum of what windows have above the limit
	least                      int64 // admitted in the window before a denial
	below                      int64 // sum of what windows before denials lack
}

// Admissions are the instants of the last window.
type admissions struct {
	instants []int64
	first    int
}

// count forgets the instants that have left the window, and returns how many are in it.
func (a *admissions) count(now int64) int64 {
	for a.first < len(a.instants) && a.instants[a.first] <= now-minute {
		a.first++
	}
	if a.first > 1<<16 {
		a.instants, a.first = append(a.instants[:0], a.instants[a.first:]...), 0
	}
	return int64(len(a.instants) - a.first)
}

func (a *admissions) add(now int64) { a.instants = append(a.instants, now) }

// begin is an instant at which windows of the clock begin.
var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

func newRun(limit algorithms.Limit) *run {
	r := &run{limit: limit, random: rand.New(rand.NewPCG(1, uint64(limit.Requests()))), now: begin}
	r.memory = algorithms.NewMemory(&algorithms.MemoryOptions{Now: func() time.Time { return time.UnixMicro(r.now) }})
	r.least = limit.Requests()
	return r
}

// ask sends a request at an instant. It returns how long the client should wait.
func (r *run) ask(now int64) (wait int64) {
	r.now = now
	d, err := algorithms.Allow(context.Background(), r.memory, "usr=1", r.limit)
	if err != nil {
		panic(err) // a Memory decides every valid check
	}
	limit := r.limit.Requests()
	r.requests++
	if r.log.count(now) < limit {
		r.log.add(now)
		r.logged++
	}
	n := r.own.count(now)
	if !d.Allowed {
		r.least = min(r.least, n)
		r.below += max(0, limit-n)
		return d.RetryAfter.Microseconds()
	}
	r.own.add(now)
	r.admitted++
	r.most = max(r.most, n+1)
	r.above += max(0, n+1-limit)
	return 0
}
