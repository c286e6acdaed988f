// Tests of the lines of clients, against the formula in rational numbers.

package comeback

import (
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/draw"
)

// aSecond is a limit that has a unit in each second.
var aSecond = algorithms.TokenBucket(60, time.Minute)

// at returns a denial of a client at now, with an honest wait in µs.
func at(now, wait int64) *place {
	return &place{line: 7, now: now, honest: now + wait, cost: 1, limit: aSecond, instances: 1, later: maxLater.Microseconds()}
}

// TestLinesFollowTheFormula: instants are the formula's to the µs.
func TestLinesFollowTheFormula(t *testing.T) {
	t.Parallel()
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		limit := algorithms.TokenBucket(v.Int64(1, 1000), time.Duration(v.Int64(1, 1e8))*time.Microsecond)
		if limit.Validate() != nil {
			return
		}
		c, line, now := new(clients), new(big.Rat), int64(0)
		for range v.Int(1, 60) {
			now += v.Int64(0, 3_000_000)
			p := at(now, v.Int64(1, 5_000_000))
			p.limit, p.cost = limit, v.Int64(1, 3)
			honest, end := new(big.Rat).SetInt64(p.honest), new(big.Rat).SetInt64(p.honest+maxLater.Microseconds())
			apart := big.NewRat(p.cost*limit.Window().Microseconds(), limit.Requests())
			if apart.Cmp(new(big.Rat).SetInt64(maxLater.Microseconds())) > 0 {
				if got := c.next(p); got != p.honest {
					t.Fatalf("%v at %d: got %d, want the honest %d", limit, now, got, p.honest)
				}
				continue
			}
			if line.Cmp(new(big.Rat).SetInt64(now)) <= 0 {
				line.Set(honest)
			} else {
				line.Add(line, apart)
				if line.Cmp(honest) < 0 {
					line.Set(honest)
				}
				if line.Cmp(end) > 0 {
					line.Set(end)
				}
			}
			up := new(big.Int).Add(line.Num(), new(big.Int).Sub(line.Denom(), big.NewInt(1)))
			want := up.Div(up, line.Denom()).Int64()
			if got := c.next(p); got != want || got < p.honest || got > p.honest+maxLater.Microseconds() {
				t.Fatalf("%v at %d: got %d, want %d, from %d to 30 s later", limit, now, got, want, p.honest)
			}
		}
	})
}

// TestLoneClientHearsTheHonestWait: if it returns as told, or later, all of its denials are first ones.
func TestLoneClientHearsTheHonestWait(t *testing.T) {
	t.Parallel()
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		c, now := new(clients), int64(0)
		for range v.Int(1, 50) {
			p := at(now, v.Int64(0, 1e9))
			p.instances = v.Int64(1, 9)
			got := c.next(p)
			if got != p.honest {
				t.Fatalf("at %d: got %d, want the honest %d", now, got, p.honest)
			}
			now = got + draw.Of(v, int64(0), 1, 1_000, 900_000, 1e8)
		}
	})
}

// TestWorkersGetOneUnitEach: the first hears the honest wait, and each further one returns a unit later, by its own cost.
func TestWorkersGetOneUnitEach(t *testing.T) {
	t.Parallel()
	c, s := new(clients), int64(1_000_000)
	var got []int64
	for i, cost := range []int64{1, 1, 3, 1} {
		p := at(int64(i)*s/10, s-int64(i)*s/10)
		p.cost = cost
		got = append(got, c.next(p))
	}
	if want := []int64{s, 2 * s, 5 * s, 6 * s}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := c.next(at(s, s)); got != 7*s { // the first is back, and denied
		t.Errorf("got %d, want %d", got, 7*s)
	}
	if got := c.next(at(7*s, s)); got != 8*s {
		t.Errorf("after the line: got %d, want the honest %d", got, 8*s)
	}
}

// TestClocksOfTheLimiterMayDiffer: a second denial before the first one's instant is a further one, although its honest
// instant is a little later.
func TestClocksOfTheLimiterMayDiffer(t *testing.T) {
	t.Parallel()
	c := new(clients)
	first := c.next(at(0, 1_000_000))
	if got := c.next(at(300_000, 702_000)); got != first+1_000_000 {
		t.Errorf("got %d, want 1 s after %d", got, first)
	}
}

// TestClientThatIgnoresItsWait: each of its denials is at most 30 s later than honest, and the line ends when it stops.
func TestClientThatIgnoresItsWait(t *testing.T) {
	t.Parallel()
	c, last := new(clients), int64(0)
	for now := int64(0); now < 120_000_000; now += 100_000 {
		p := at(now, 1_000_000-now%1_000_000)
		if last = c.next(p); last > p.honest+30_000_000 || last < p.honest {
			t.Fatalf("at %d: got %d, want it within 30 s of %d", now, last, p.honest)
		}
	}
	if got := c.next(at(last, 1_000_000)); got != last+1_000_000 {
		t.Errorf("after the line: got %d, want the honest %d", got, last+1_000_000)
	}
}

// TestLinesAreBounded: further clients hear the honest wait, and all room is free again afterwards.
func TestLinesAreBounded(t *testing.T) {
	t.Parallel()
	c := new(clients)
	for i := range uint64(maxClients + 100) {
		for nth := range int64(2) {
			p := at(0, 1_000_000)
			p.line = i
			want := int64(1_000_000)
			if i < maxClients {
				want += nth * 1_000_000
			}
			if got := c.next(p); got != want {
				t.Fatalf("client %d: got %d, want %d", i, got, want)
			}
		}
	}
	if len(c.lines) != maxClients {
		t.Errorf("got %d lines, want %d", len(c.lines), maxClients)
	}
	if c.next(at(2_000_000, 1)); len(c.lines) != 1 {
		t.Errorf("got %d lines afterwards, want 1", len(c.lines))
	}
	if c.sweep(10_000_000); c.lines != nil {
		t.Errorf("got %d lines in the end, want none", len(c.lines))
	}
}

// TestExtremeLines: no limit that is valid overflows.
func TestExtremeLines(t *testing.T) {
	t.Parallel()
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		limit := algorithms.TokenBucket(v.Int64(1, 1e9), time.Duration(v.Int64(1, 407*86_400*1e6))*time.Microsecond)
		if limit.Validate() != nil {
			return
		}
		c := new(clients)
		for range 5 {
			p := at(v.Int64(0, 10*365*86_400*1e6), v.Int64(0, 814*86_400*1e6))
			p.limit, p.cost, p.instances = limit, v.Int64(1, 1e9), v.Int64(1, 100_000)
			if got := c.next(p); got < p.honest || got > p.honest+maxLater.Microseconds() {
				t.Fatalf("got %d, want it within 30 s of %d", got, p.honest)
			}
		}
	})
}

// TestChangedLimitKeepsTheClientsLine: a line goes on under another rate.
func TestChangedLimitKeepsTheClientsLine(t *testing.T) {
	t.Parallel()
	c := new(clients)
	for range 2 {
		p := at(0, 1_000_000)
		p.limit = algorithms.TokenBucket(3, time.Second)
		c.next(p) // 1 333 333 1/3
	}
	if got := c.next(at(0, 1_000_000)); got != 2_333_334 {
		t.Errorf("got %d, want 1 s after the line, rounded up", got)
	}
}

func BenchmarkClient(b *testing.B) {
	table := New(algorithms.NewMemory(nil))
	d := Denial{Policy: "per-client", Key: "ip=192.0.2.1", Client: "ip=192.0.2.1", Limit: aSecond, Cost: 1, Wait: time.Second}
	b.ReportAllocs()
	for b.Loop() {
		table.Wait(b.Context(), &d)
	}
}
