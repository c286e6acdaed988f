package main

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
)

// bench returns a stage on a server of its own, and a limiter there.
func bench(t *testing.T) (*stage, *shared.Limiter) {
	t.Helper()
	server, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.close)
	s := &stage{server: server, quick: true}
	t.Cleanup(s.close)
	limiter, err := newShared(s, s.client(), shared.Options{Views: shared.ViewsOff})
	if err != nil {
		t.Fatal(err)
	}
	return s, limiter
}

// both asks penstock and the bare script for a unit of each key, and wants the same
// verdicts and the same units in use. It returns how many were allowed.
func both(t *testing.T, l *shared.Limiter, script bare, limit algorithms.Limit, keys []string) (allowed int) {
	t.Helper()
	checks := make([]algorithms.Check, len(keys))
	bareKeys := make([]string, len(keys))
	for i, key := range keys {
		checks[i] = algorithms.Check{Policy: "p", Key: key, Limit: limit, Cost: 1}
		bareKeys[i] = "bare:" + key
		if err := l.Allow(t.Context(), checks[i:i+1]); err != nil {
			t.Fatal(err)
		}
	}
	answers, err := script.ask(t.Context(), bareKeys, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		d := checks[i].Decision
		if d.Source != algorithms.Shared || d.Allowed != a.allowed || limit.Burst()-d.Remaining != a.n {
			t.Errorf("%s: penstock answers %+v, the bare script %+v", keys[i], d, a)
		}
		if a.allowed {
			allowed++
		}
	}
	return allowed
}

func TestBareDecidesAsPenstock(t *testing.T) {
	t.Parallel()
	s, limiter := bench(t)
	limit := algorithms.TokenBucket(7, time.Hour).WithBurst(5)
	script := newBare(s.client(), limit)
	allowed := 0
	for n := range 60 {
		var keys []string
		for _, i := range rand.Perm(10)[:1+n%10] {
			keys = append(keys, fmt.Sprintf("user:%d", i))
		}
		allowed += both(t, limiter, script, limit, keys)
	}
	if allowed != 10*5 {
		t.Errorf("%d takes were allowed, want 50", allowed)
	}
}

// After the time of a unit and a quarter, one unit has drained, unless this machine was late.
func TestBareDrainsAsPenstock(t *testing.T) {
	t.Parallel()
	s, limiter := bench(t)
	limit := algorithms.TokenBucket(3, 6*time.Second) // a unit takes two seconds
	script, keys := newBare(s.client(), limit), []string{"user:1", "user:2"}
	for range 3 {
		if err := s.server.flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for range 3 {
			both(t, limiter, script, limit, keys)
		}
		time.Sleep(2500 * time.Millisecond) // by Redis's clock
		first, second := both(t, limiter, script, limit, keys), both(t, limiter, script, limit, keys)
		if time.Since(begin) < 4*time.Second {
			if first != 2 || second != 0 {
				t.Errorf("of 2 keys %d and then %d were allowed, want 2 and 0", first, second)
			}
			return
		}
	}
	t.Fatal("three times, this machine was late by more than a second")
}

// A state moves on by the exact time of the units that have drained, also if that is
// no whole number of µs.
func TestBareIsExact(t *testing.T) {
	t.Parallel()
	s, _ := bench(t)
	limit := algorithms.TokenBucket(90, time.Minute) // r = 3, w = 2 000 000
	script := newBare(s.client(), limit)
	if script.r != 3 || script.w != 2_000_000 {
		t.Fatalf("got r = %d and w = %d, want 3 and 2 000 000", script.r, script.w)
	}
	for range 100 {
		n, f := 20+rand.Int64N(60), rand.Int64N(3)
		before := time.Now().UnixMicro()
		t0 := before - rand.Int64N(12_000_000)
		text := fmt.Sprintf("%d:%d:%d", t0, n, f)
		if f == 0 {
			text = bareState(t0, n)
		}
		if err := s.server.admin.Set(t.Context(), "k", text, time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		answers, err := script.ask(t.Context(), []string{"k"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		after, drained := time.Now().UnixMicro(), n+1-answers[0].n
		t1, n1, f1 := stateOf(t, s.server)
		if !answers[0].allowed || n1 != answers[0].n || t1 != answers[0].t {
			t.Errorf("%s: got the answer %+v and the state %d:%d:%d", text, answers[0], t1, n1, f1)
		}
		want := parts(script.r, t0, f)
		want.Add(want, big.NewInt(drained*script.w))
		if parts(script.r, t1, f1).Cmp(want) != 0 || f1 >= script.r {
			t.Errorf("%s: got %d:%d:%d after %d units drained", text, t1, n1, f1, drained)
		}
		if t1 > after || parts(script.r, before, -script.w).Cmp(parts(script.r, t1, f1)) >= 0 {
			t.Errorf("%s: got %d:%d:%d, and another unit has drained", text, t1, n1, f1)
		}
	}
}

// parts returns t + f/r in parts of 1/r µs.
func parts(r, t, f int64) *big.Int {
	p := new(big.Int).Mul(big.NewInt(t), big.NewInt(r))
	return p.Add(p, big.NewInt(f))
}

// stateOf reads the state of the key k.
func stateOf(t *testing.T, s *server) (t1, n, f int64) {
	t.Helper()
	text, err := s.admin.Get(t.Context(), "k").Result()
	if err != nil {
		t.Fatal(err)
	}
	form := "%d:%d:%d"
	if !strings.Contains(text, ":") {
		text, form = text[:16]+" "+text[16:], "%d %d"
		_, err = fmt.Sscanf(text, form, &t1, &n)
	} else {
		_, err = fmt.Sscanf(text, form, &t1, &n, &f)
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return t1, n, f
}

// Each cell finds its keys in the state that its name says. verify and theirs check
// that.
func TestCells(t *testing.T) {
	t.Parallel()
	s, _ := bench(t)
	rows := instructionMeasures[0].contestants
	for _, row := range rows {
		step, err := row.start(t.Context(), s, plan{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := step(context.Background()); err != nil {
			t.Errorf("%s: %v", row.name, err)
		} else if strings.HasSuffix(row.name, "alone") && got[checksPerScript] > 3 {
			t.Errorf("%s: %v checks per script", row.name, got[checksPerScript])
		}
	}
}
