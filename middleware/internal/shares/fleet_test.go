package shares

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/draw"
)

// A farStore is shared by instances. Its calls and answers take up to 40 ms each.
type farStore struct {
	*algorithms.Memory
	down bool
}

func (s *farStore) Allow(ctx context.Context, checks []algorithms.Check) error {
	if s.down {
		return errors.New("down")
	}
	time.Sleep(rand.N(40 * time.Millisecond))
	err := s.Memory.Allow(ctx, checks)
	time.Sleep(rand.N(40 * time.Millisecond))
	for i := range checks {
		checks[i].Decision.Source = algorithms.Shared
	}
	return err
}

// TestFleetCountsAllTenants: tenants that ask one instance each are counted by all of them, once.
func TestFleetCountsAllTenants(t *testing.T) {
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		const stay = 5 * time.Second
		weights := draw.Some(v.Int(3, 12), func() int64 { return v.Int64(1, 5) })
		offset := time.Duration(v.Int64(0, 5_000)) * time.Millisecond
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(offset) // windows begin at any time of an instance
			store, all := &farStore{Memory: algorithms.NewMemory(nil)}, int64(0)
			tables, begin := []*Table{New(stay), New(stay), New(stay)}, time.Now()
			for _, w := range weights {
				all += w
			}
			var wg sync.WaitGroup
			for i, weight := range weights {
				table, most := tables[i%3], stay/2
				if i < 3 {
					most = stay / tenths / 3 // each instance has a busy tenant
				}
				wg.Go(func() {
					for time.Since(begin) < 6*stay {
						time.Sleep(rand.N(most))
						sum, announce := table.Ask(uint64(i), weight, time.Since(begin))
						if announce {
							table.Announce(t.Context(), store, "p", strconv.Itoa(i), weight, begin)
						}
						if time.Since(begin) > 2*stay && sum != all {
							t.Errorf("tenant %d at %v: got %d, want %d", i, time.Since(begin), sum, all)
						}
					}
				})
			}
			wg.Wait()
		})
	})
}

// TestFleetIsDown: an instance whose limiter cannot answer counts its own tenants, and asks the limiter hardly more often than ten times in a window.
func TestFleetIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, begin := &farStore{Memory: algorithms.NewMemory(nil)}, time.Now()
		one, other := New(time.Second), New(time.Second)
		ask := func(table *Table, id uint64) (sum int64, announced bool) {
			if _, announced = table.Ask(id, 1, time.Since(begin)); announced {
				table.Announce(t.Context(), store, "p", strconv.FormatUint(id, 10), 1, begin)
			}
			_, sum = table.Present(time.Since(begin))
			return sum, announced
		}
		ask(one, 1)
		if got, _ := ask(other, 2); got != 2 {
			t.Errorf("got %d, want both tenants", got)
		}
		store.down = true
		time.Sleep(time.Second / tenths)
		announced := 0
		for range 100 {
			time.Sleep(10 * time.Millisecond)
			sum, asked := ask(other, 2)
			if sum != 1 {
				t.Fatalf("while it is down: got %d, want the own tenant", sum)
			}
			if asked {
				announced++
			}
		}
		if announced > 12 {
			t.Errorf("got %d announcements, want one in each tenth, and one as the window begins", announced)
		}
	})
}
