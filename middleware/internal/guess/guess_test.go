package guess

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/penstock-go/penstock/algorithms"
)

// TestGuessesAreBounded: a full table takes no further address until others expire, and a table without addresses is no memory.
func TestGuessesAreBounded(t *testing.T) {
	g := new(Table)
	for i := range 2 * maxAddresses {
		g.Add(fmt.Sprint("a", i), time.Minute, time.Second)
	}
	if len(g.all) != maxAddresses || int(g.n.Load()) != maxAddresses {
		t.Fatalf("got %d addresses, counted as %d, want %d", len(g.all), g.n.Load(), maxAddresses)
	}
	if got := g.Wait(fmt.Sprint("a", maxAddresses), time.Second); got != 0 {
		t.Errorf("got %v for an address that found no room, want 0", got)
	}
	g.Add("late", time.Minute, time.Minute+time.Second)
	if len(g.all) != 1 || g.Wait("late", time.Minute+time.Second) != time.Minute || g.Wait("a0", time.Minute+time.Second) != 0 {
		t.Errorf("got %d addresses after all had expired, want the new one", len(g.all))
	}
	if got := g.Wait("other", time.Hour); got != 0 || g.all != nil || g.n.Load() != 0 {
		t.Errorf("got %v, %d addresses and count %d at the end, want no table", got, len(g.all), g.n.Load())
	}
}

// TestGuessesSweepSeldom: a flood of guesses from many addresses does not walk the full table each time.
func TestGuessesSweepSeldom(t *testing.T) {
	g := new(Table)
	g.Add("a", time.Millisecond, time.Second)
	for i := range maxAddresses {
		g.Add(fmt.Sprint("b", i), time.Minute, time.Second+time.Duration(i)*time.Microsecond)
	}
	if g.swept != time.Second {
		t.Errorf("got a sweep at %v, want none within a second after the first", g.swept)
	}
	if _, kept := g.all["a"]; !kept || g.Wait("a", time.Second+time.Millisecond) != 0 {
		t.Errorf("got the expired address kept %t, want it kept until the next sweep and refused no longer", kept)
	}
}

// TestGuessesTellTheWait: it is the exact rest, Never if waiting cannot help, and 0 without a table or a wait.
func TestGuessesTellTheWait(t *testing.T) {
	const now = 90 * time.Minute
	for _, tt := range []struct {
		name           string
		wait, at, want time.Duration
	}{
		{"At once it is the wait.", time.Minute, 0, time.Minute},
		{"A microsecond before the end it is a microsecond.", time.Minute, time.Minute - time.Microsecond, time.Microsecond},
		{"At the end it is 0.", time.Minute, time.Minute, 0},
		{"A wait of ten hours is not cut.", 10 * time.Hour, time.Minute, 10*time.Hour - time.Minute},
		{"An address is forgotten after an hour.", 10 * time.Hour, time.Hour, 0},
		{"Never is Never.", algorithms.Never, time.Minute, algorithms.Never},
		{"Never is forgotten after an hour, too.", algorithms.Never, time.Hour, 0},
		{"A wait of nearly Never does not overflow.", algorithms.Never - 1, time.Minute, algorithms.Never},
		{"Without a wait it is not remembered.", 0, 0, 0},
	} {
		g := new(Table)
		g.Add("a", tt.wait, now)
		if got := g.Wait("a", now+tt.at); got != tt.want {
			t.Errorf("%s got %v, want %v", tt.name, got, tt.want)
		}
		g.Remove("a")
		if got := g.Wait("a", now); got != 0 || g.n.Load() != 0 {
			t.Errorf("%s got %v and count %d after remove, want 0", tt.name, got, g.n.Load())
		}
	}
}

// TestGuessesCloneAddresses: the bytes of an address are the request's, which uses them again.
func TestGuessesCloneAddresses(t *testing.T) {
	g, bytes := new(Table), []byte("ip=192.0.2.1")
	g.Add(unsafe.String(&bytes[0], len(bytes)), time.Minute, time.Second)
	copy(bytes, "ip=192.0.2.9")
	if g.Wait("ip=192.0.2.1", time.Second) == 0 || g.Wait("ip=192.0.2.9", time.Second) != 0 {
		t.Error("got an address that changed with the request's bytes")
	}
}
