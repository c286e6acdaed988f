package main

import (
	"io"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func TestClaims(t *testing.T) {
	const minute = 60_000_000
	tests := []struct {
		limit         algorithms.Limit
		first, last   int64 // µs; first does not include early
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
		a := &account{limit: tt.limit}
		a.first.Store(tt.first + early)
		a.last.Store(tt.last)
		got := a.claims(tt.losses, 4)
		if got[0].most != tt.shared || got[1].most != tt.local {
			t.Errorf("%v from %d to %d, %d losses: got %v, want bounds of %d and %d", tt.limit, tt.first, tt.last, tt.losses, got, tt.shared, tt.local)
		}
	}
}

func TestRecovery(t *testing.T) {
	at := func(seconds float64) time.Time { return time.UnixMilli(int64(1000 * seconds)) }
	// The seconds at which a circuit opened, closed, opened again and so on.
	history := func(seconds ...float64) (changes []algorithms.CircuitChange) {
		for i, s := range seconds {
			changes = append(changes, algorithms.CircuitChange{At: at(s), Open: i%2 == 0})
		}
		return changes
	}
	const open = -1 * time.Nanosecond
	end := at(100)
	tests := []struct {
		name         string
		changes      []algorithms.CircuitChange
		took, within time.Duration
	}{
		{"never open", nil, 0, 3 * time.Second},
		{"closed before the end", history(90, 95), 0, 3 * time.Second},
		{"open", history(99), open, 3 * time.Second},
		{"closed after the end", history(99, 102), 2 * time.Second, 3 * time.Second},
		{"opened again after 10 s", history(80, 85, 95), open, 3 * time.Second},
		{"opened again within 10 s", history(80, 86, 95.9), open, 4 * time.Second},
		{"twice", history(80, 81, 82, 83, 84, 105), 5 * time.Second, 6 * time.Second},
		{"twice, then calm", history(60, 61, 62, 63, 64, 65, 76), open, 3 * time.Second},
		{"five times", history(80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90), open, 32 * time.Second},
		{"seven times", history(80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94), open, 32 * time.Second},
		{"the first openings are forgotten", history(80, 81, 82, 83)[1:], 0, 4 * time.Second},
		{"opened after the end", history(101, 103), 0, 3 * time.Second},
		{"opened again after it closed", history(99, 102, 103), 2 * time.Second, 3 * time.Second},
	}
	for _, tt := range tests {
		if took, within := recovery(tt.changes, end); took != tt.took || within != tt.within {
			t.Errorf("%s: closed after %v of %v, want %v of %v", tt.name, took, within, tt.took, tt.within)
		}
	}
}

func TestStallsAreNoLateness(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	w := &waits{stalls: []span{{from: at(0), to: at(60)}, {from: at(100), to: at(300)}, {from: at(900), to: at(999)}}}
	w.note(at(50), at(310), 1)  // 260 ms, 210 of them stalled
	w.note(at(400), at(560), 1) // 160 ms
	w.note(at(400), at(560), 2)
	got := w.judge()
	if len(got.over) != 1 || got.over[0].parts != 1 || got.net != 160*time.Millisecond || got.slowest != 260*time.Millisecond {
		t.Errorf("got %+v, want only the call of 160 ms to be late", got)
	}
	if got := w.judge(); got.slowest != 0 || got.stalls != 0 {
		t.Errorf("got %+v at the next judgement, want nothing", got)
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
