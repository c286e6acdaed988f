package ratelimit

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// register returns how many entries and uses the register of names has for a limiter.
func register(l algorithms.Limiter) (entries, uses, middlewares int) {
	named.mu.Lock()
	defer named.mu.Unlock()
	for key, n := range named.all {
		if key.limiter != l {
			continue
		}
		entries++
		uses += len(n.uses)
		for _, count := range n.uses {
			middlewares += count
		}
	}
	return entries, uses, middlewares
}

// TestRegisterIsFlat: of 10 000 Middlewares, each New reads one entry per policy. The register has one entry per name, and
// in it one place per text of limits, so no New depends on how many there are.
func TestRegisterIsFlat(t *testing.T) {
	const many = 10_000
	quiet := &Options{Logger: slog.New(slog.DiscardHandler)}
	policy := func(name string, n int64) Policy {
		return Policy{Name: name, Limit: algorithms.TokenBucket(n, time.Hour)}
	}
	for _, tt := range []struct {
		name          string
		policies      func(i int) []Policy
		entries, uses int
	}{
		{"All have one name and one limit.", func(int) []Policy { return []Policy{policy("p", 1), policy("q", 2)} }, 2, 2},
		{"Each has its own name.", func(i int) []Policy { return []Policy{policy(fmt.Sprint("p", i), 1)} }, many, many},
		{"All have one name, and each has its own limit.", func(i int) []Policy { return []Policy{policy("p", int64(i+1))} }, 1, many},
	} {
		t.Run(tt.name, func(t *testing.T) {
			memory := algorithms.NewMemory(nil)
			allocs := func(from int) float64 {
				i := from
				return testing.AllocsPerRun(20, func() {
					if m, err := New(memory, quiet, tt.policies(i)...); err != nil || m.Close(context.Background()) != nil {
						t.Fatal(err)
					}
					i++
				})
			}
			few := allocs(0)
			all := make([]*Middleware, many)
			for i := range all {
				all[i] = Must(New(memory, quiet, tt.policies(i)...))
			}
			perMiddleware := len(tt.policies(0))
			if entries, uses, n := register(memory); entries != tt.entries || uses != tt.uses || n != many*perMiddleware {
				t.Errorf("got %d entries, %d texts and %d uses, want %d, %d and %d", entries, uses, n, tt.entries, tt.uses, many*perMiddleware)
			}
			if got := allocs(many); got > few+few/4 { // texts of longer numbers, and what the race detector adds
				t.Errorf("got %v allocations of New beside 10 000 others, want %v", got, few)
			}
			for _, m := range all {
				if err := m.Close(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			if entries, uses, n := register(memory); entries+uses+n != 0 {
				t.Errorf("got %d entries, %d texts and %d uses after Close, want none", entries, uses, n)
			}
			runtime.KeepAlive(all)
		})
	}
}

// TestRegisterFollowsUpdates: an Update leaves no entry of the old policies.
func TestRegisterFollowsUpdates(t *testing.T) {
	memory := algorithms.NewMemory(nil)
	policy := func(name string, n int64, shadow bool) Policy {
		return Policy{Name: name, Limit: algorithms.TokenBucket(n, time.Hour), Shadow: shadow}
	}
	m := Must(New(memory, nil, policy("a", 1, false), policy("b", 1, false)))
	for _, tt := range []struct {
		name     string
		policies []Policy
		want     int
	}{
		{"The limit of a changes.", []Policy{policy("a", 2, false), policy("b", 1, false)}, 2},
		{"Policy b leaves.", []Policy{policy("a", 2, false)}, 1},
		{"Policy a becomes a shadow.", []Policy{policy("a", 2, true)}, 0},
		{"Policy a returns, with c.", []Policy{policy("a", 2, false), policy("c", 2, false)}, 2},
	} {
		if err := m.Update(tt.policies...); err != nil {
			t.Fatal(err)
		}
		if entries, uses, n := register(memory); entries != tt.want || uses != tt.want || n != tt.want {
			t.Errorf("%s got %d entries, %d texts and %d uses, want %d of each", tt.name, entries, uses, n, tt.want)
		}
		if len(m.Findings()) != 0 {
			t.Errorf("%s got %v, want no findings", tt.name, m.Findings())
		}
	}
}

// TestRegisterRefusesLateUpdates: a Middleware that was closed does not come back into the register.
func TestRegisterRefusesLateUpdates(t *testing.T) {
	memory := algorithms.NewMemory(nil)
	m := Must(New(memory, nil, Policy{Name: "a", Limit: algorithms.TokenBucket(1, time.Hour)}))
	if err := m.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	m.registerNames()
	if entries, _, _ := register(memory); entries != 0 {
		t.Errorf("got %d entries of a closed Middleware, want none", entries)
	}
}
