package headers_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
)

// TestReadyItems makes sure that a quota with ready items and a new quota send the
// same lines, while four goroutines use the first.
func TestReadyItems(t *testing.T) {
	fresh := func() *headers.Quota { return bucket(t, "a", 200, time.Minute) }
	used := fresh()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(g)))
			for range 2_000 {
				s := headers.State{Quota: used, Remaining: random.Int64N(200), ResetAfter: time.Duration(random.Int64N(60e9)), UnitAfter: time.Second}
				response := admitted
				if random.IntN(4) == 0 {
					response, s.Denied, s.RetryAfter = denied, true, time.Duration(random.Int64N(300e9))
				}
				if s.Denied && random.IntN(10) == 0 {
					s.RetryAfter = headers.Never
				}
				got := dump(write(headers.Draft, response(s)))
				s.Quota = fresh()
				if want := dump(write(headers.Draft, response(s))); got != want {
					t.Errorf("got\n%swant\n%s", got, want)
				}
			}
		})
	}
	wg.Wait()
}
