package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func TestClaims(t *testing.T) {
	const minute = 60_000_000
	tests := []struct {
		limit         algorithms.Limit
		first, last   int64 // µs
		losses        int64
		shared, local int64
	}{
		{algorithms.TokenBucket(60, time.Minute).WithBurst(10), 0, minute, 0, 10 + 60 + 1, 10 + 60 + 4},
		{algorithms.TokenBucket(60, time.Minute).WithBurst(10), 0, minute, 2, 10 + 60 + 1 + 20, 10 + 60 + 4},
		{algorithms.SlidingWindowLog(60, time.Minute), 5, 5 + minute/2, 0, 60, 60 + 30 + 4},
		{algorithms.FixedWindow(60, time.Minute), minute - 1, minute, 0, 2 * 60, 60 + 0 + 4},
		{algorithms.FixedWindow(60, time.Minute), minute, 3*minute - 1, 1, 2*60 + 60, 60 + 119 + 4},
	}
	for _, tt := range tests {
		a := &account{limit: tt.limit, first: tt.first, last: tt.last}
		got := a.claims(tt.losses)
		if got[0].most != tt.shared || got[1].most != tt.local {
			t.Errorf("%v from %d to %d, %d losses: got %v, want bounds of %d and %d", tt.limit, tt.first, tt.last, tt.losses, got, tt.shared, tt.local)
		}
	}
}

func TestRecovery(t *testing.T) {
	for _, tt := range []struct {
		name   string
		closes time.Duration
		took   time.Duration
	}{
		{"never open", 0, 0},
		{"in time", 2*time.Second - time.Millisecond, 2 * time.Second},
		{"late", 8 * time.Second, 8 * time.Second},
		{"never closed", time.Hour, 9*time.Second + lookEvery},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				took := recovery(func() int {
					if time.Since(begin) < tt.closes {
						return 2
					}
					return 0
				})
				if took != tt.took {
					t.Errorf("got %v, want %v", took, tt.took)
				}
			})
		})
	}
}

func TestStallsAreNoLateness(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	w := &waits{stalls: []span{{from: at(0), to: at(60)}, {from: at(100), to: at(300)}, {from: at(900), to: at(999)}}}
	w.note(at(50), at(310), 1)  // 260 ms, 210 of them stalled
	w.note(at(400), at(560), 1) // 160 ms
	w.note(at(400), at(560), 2)
	var over []string
	slowest, net := w.judge(func(format string, args ...any) { over = append(over, fmt.Sprintf(format, args...)) })
	if len(over) != 1 || !strings.Contains(over[0], "of 1 slots took 160ms") || net != 160*time.Millisecond || slowest != 260*time.Millisecond {
		t.Errorf("got %q, want only the call of 160 ms to be late", over)
	}
}

func TestAuditOfOnces(t *testing.T) {
	tests := []struct {
		once    once
		held    int64
		broken  bool
		missing int64
	}{
		{once{cost: 3, taken: surely}, 3, false, 0},
		{once{cost: 3, taken: surely}, 6, true, 0},
		{once{cost: 3, taken: surely}, 2, true, 0},
		{once{cost: 3, taken: surely, returned: 2, undone: surely}, 1, false, 0},
		{once{cost: 3, taken: surely, returned: 2, undone: surely}, 3, true, 0},
		{once{cost: 3, taken: surely, returned: 2, undone: surely}, 0, true, 0},
		{once{cost: 3, taken: surely, returned: 2, undone: perhaps}, 3, false, 0},
		{once{cost: 3, taken: perhaps}, 0, false, 0},
		{once{cost: 3, taken: perhaps}, 6, true, 0},
		{once{cost: 3, taken: owed}, 3, false, 0},
		{once{cost: 3, taken: owed}, 1, false, 2},
		{once{cost: 3, taken: owed}, 6, true, 0},
	}
	for _, tt := range tests {
		l := &leg{report: &report{out: io.Discard}}
		missing := l.compare(&tt.once, tt.held)
		if missing != tt.missing || (l.report.broken > 0) != tt.broken {
			t.Errorf("%+v, held %d: got %d missing, broken %d; want %d missing, broken %v", tt.once, tt.held, missing, l.report.broken, tt.missing, tt.broken)
		}
	}
}
